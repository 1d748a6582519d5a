//===- OutlineForall.cpp - attn-cpu-outline-forall ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_CPUOUTLINEFORALLPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static constexpr llvm::StringLiteral kParallelFor = "attn_cpu_parallel_for";

static Value castTo(ImplicitLocOpBuilder &b, Type type, Value value) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(b, TypeRange{type}, ValueRange{value}).getResult(0);
}

/// Constants are made again inside the body rather than passed.
static void copyConstants(scf::ForallOp forall) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(forall.getRegion(), used);
  auto b = OpBuilder::atBlockBegin(forall.getBody());
  for (Value value : used) {
    Operation *def = value.getDefiningOp();
    if (def && def->hasTrait<OpTrait::ConstantLike>())
      replaceAllUsesInRegionWith(value, b.clone(*def)->getResult(0), forall.getRegion());
  }
}

static LLVM::LLVMFunctionType getParallelForType(MLIRContext *context) {
  auto pointer = LLVM::LLVMPointerType::get(context);
  return LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                     {pointer, pointer, IntegerType::get(context, 64)});
}

/// The name of the pool's function is taken by nothing else.
static LogicalResult checkParallelFor(ModuleOp module) {
  Operation *known = module.lookupSymbol(kParallelFor);
  auto type = getParallelForType(module.getContext());
  auto function = dyn_cast_or_null<LLVM::LLVMFuncOp>(known);
  if (!known || (function && function.isExternal() && function.getFunctionType() == type))
    return success();
  return known->emitOpError("expected the name '")
         << kParallelFor << "' for the function of the pool, " << type << ", got it here";
}

static LLVM::LLVMFuncOp getParallelFor(ModuleOp module) {
  if (auto func = module.lookupSymbol<LLVM::LLVMFuncOp>(kParallelFor))
    return func;
  auto type = getParallelForType(module.getContext());
  auto b = OpBuilder::atBlockBegin(module.getBody());
  return LLVM::LLVMFuncOp::create(b, module.getLoc(), kParallelFor, type);
}

static LLVM::LLVMFuncOp createBody(scf::ForallOp forall, ModuleOp module, unsigned number) {
  auto parent = forall->getParentOfType<FunctionOpInterface>();
  MLIRContext *context = module.getContext();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(context),
      {LLVM::LLVMPointerType::get(context), IntegerType::get(context, 64)});
  OpBuilder b(parent);
  std::string name = (parent.getName() + "_block" + Twine(number)).str();
  while (module.lookupSymbol(name))
    name += "_";
  auto body = LLVM::LLVMFuncOp::create(b, forall.getLoc(), name, type, LLVM::Linkage::Internal);
  body.addEntryBlock(b);
  return body;
}

/// Iterations of every dimension: (upper - lower) / step rounded up, none if that is negative.
static SmallVector<Value> emitCounts(ImplicitLocOpBuilder &b, scf::ForallOp forall) {
  SmallVector<Value> counts;
  for (auto [lower, upper, step] :
       llvm::zip_equal(forall.getLowerBound(b), forall.getUpperBound(b), forall.getStep(b))) {
    Value length = b.createOrFold<arith::SubIOp>(upper, lower);
    length = b.createOrFold<arith::MaxSIOp>(length, arith::ConstantIndexOp::create(b, 0));
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value rounded = b.createOrFold<arith::AddIOp>(length, b.createOrFold<arith::SubIOp>(step, one));
    counts.push_back(b.createOrFold<arith::DivUIOp>(rounded, step));
  }
  return counts;
}

namespace {
/// Makes a loop a function of an index and a context: what the body uses, and the loop's shape.
class Outliner {
public:
  Outliner(scf::ForallOp forall, ModuleOp module)
      : forall(forall), module(module), b(forall.getLoc(), forall),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult run(unsigned number);

private:
  LogicalResult capture();
  Value makeContext();
  Value getField(Value context, unsigned i) {
    return LLVM::GEPOp::create(b, pointer, structType, context,
                               ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
  }
  void fillBody(Block &entry);
  SmallVector<Value> emitPositions(Value index, IRMapping &inside);

  scf::ForallOp forall;
  ModuleOp module;
  ImplicitLocOpBuilder b;
  Type pointer;
  /// Of the loop's dimensions.
  SmallVector<Value> counts, lower, steps;
  /// The values that the context holds.
  llvm::SetVector<Value> captured;
  SmallVector<Type> types;
  Type structType;
};
} // namespace

LogicalResult Outliner::capture() {
  getUsedValuesDefinedAbove(forall.getRegion(), captured);
  for (ArrayRef<Value> values : {ArrayRef(counts), ArrayRef(lower), ArrayRef(steps)})
    for (Value value : values)
      if (!matchPattern(value, m_Constant()))
        captured.insert(value);
  LLVMTypeConverter converter(module.getContext());
  for (Value value : captured) {
    types.push_back(converter.convertType(value.getType()));
    if (!types.back())
      return forall.emitOpError("expected values that a struct can hold, got ") << value.getType();
  }
  structType = LLVM::LLVMStructType::getLiteral(module.getContext(), types);
  return success();
}

Value Outliner::makeContext() {
  Value context;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(
        &forall->getParentOfType<FunctionOpInterface>().getFunctionBody().front());
    Value one = LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(1));
    context = LLVM::AllocaOp::create(b, pointer, structType, one);
  }
  for (auto [i, value] : llvm::enumerate(captured))
    LLVM::StoreOp::create(b, castTo(b, types[i], value), getField(context, i));
  return context;
}

/// Where the loop is at an index. The first dimension is the slowest, and the last goes down.
SmallVector<Value> Outliner::emitPositions(Value index, IRMapping &inside) {
  auto lookup = [&](Value value) -> Value {
    if (inside.contains(value))
      return inside.lookup(value);
    return b.clone(*value.getDefiningOp(), inside)->getResult(0);
  };
  SmallVector<Value> positions(counts.size());
  for (unsigned i = counts.size(); i-- > 0;) {
    Value count = lookup(counts[i]);
    Value id = i == 0 ? index : b.createOrFold<arith::RemUIOp>(index, count);
    index = i == 0 ? index : b.createOrFold<arith::DivUIOp>(index, count);
    if (i + 1 == counts.size()) {
      Value last = b.createOrFold<arith::SubIOp>(count, arith::ConstantIndexOp::create(b, 1));
      id = b.createOrFold<arith::SubIOp>(last, id);
    }
    Value offset = b.createOrFold<arith::MulIOp>(id, lookup(steps[i]));
    positions[i] = b.createOrFold<arith::AddIOp>(lookup(lower[i]), offset);
  }
  return positions;
}

/// Values from the context, positions from the index, then what the loop held.
void Outliner::fillBody(Block &entry) {
  b.setInsertionPointToStart(&entry);
  IRMapping inside;
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value loaded = LLVM::LoadOp::create(b, types[i], getField(entry.getArgument(0), i));
    inside.map(value, castTo(b, value.getType(), loaded));
  }
  Value index = castTo(b, b.getIndexType(), entry.getArgument(1));
  SmallVector<Value> positions = emitPositions(index, inside);
  for (Value value : captured)
    replaceAllUsesInRegionWith(value, inside.lookup(value), forall.getRegion());
  for (auto [argument, position] : llvm::zip_equal(forall.getInductionVars(), positions))
    argument.replaceAllUsesWith(position);
  forall.getTerminator()->erase();
  entry.getOperations().splice(entry.end(), forall.getBody()->getOperations());
  b.setInsertionPointToEnd(&entry);
  LLVM::ReturnOp::create(b, ValueRange());
}

LogicalResult Outliner::run(unsigned number) {
  assert(forall.getNumResults() == 0 && "results are tensors, which the room has none of");
  if (!forall->getParentOfType<FunctionOpInterface>())
    return forall.emitOpError("expected it inside of a function");
  copyConstants(forall);
  counts = emitCounts(b, forall);
  lower = forall.getLowerBound(b), steps = forall.getStep(b);
  Value total = arith::ConstantIndexOp::create(b, 1);
  for (Value count : counts)
    total = b.createOrFold<arith::MulIOp>(total, count);
  if (failed(capture()))
    return failure();
  Value context = makeContext();
  LLVM::LLVMFuncOp body = createBody(forall, module, number);
  Value address = LLVM::AddressOfOp::create(b, body);
  LLVM::CallOp::create(b, getParallelFor(module),
                       ValueRange{address, context, castTo(b, b.getI64Type(), total)});
  fillBody(body.getBody().front());
  forall.erase();
  return success();
}

namespace {
struct CPUOutlineForallPass : RoomPass<attn::impl::CPUOutlineForallPassBase<CPUOutlineForallPass>,
                                       Room::Vectors, Room::Vectors> {
  LogicalResult transform() override {
    SmallVector<scf::ForallOp> loops;
    getOperation()->walk([&](scf::ForallOp forall) { loops.push_back(forall); });
    if (!loops.empty() && failed(checkParallelFor(getOperation())))
      return failure();
    for (auto [number, forall] : llvm::enumerate(loops))
      if (failed(Outliner(forall, getOperation()).run(number)))
        return failure();
    return success();
  }
};
} // namespace
