//===- Registers.cpp - register tiles as the values one thread holds ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

int64_t attn::tile::getPack(Type elementType) {
  if (!elementType.isIntOrFloat())
    return 1;
  unsigned bits = elementType.getIntOrFloatBitWidth();
  return bits == 8 || bits == 16 ? 32 / bits : 1;
}

static std::optional<LogicalResult> convertTile(RankedTensorType type,
                                                SmallVectorImpl<Type> &results) {
  if (!hasLayout(type))
    return failure();
  Type element = type.getElementType();
  int64_t registers = getLayout(type).getNumRegisters(), pack = getPack(element);
  if (registers % pack != 0)
    return failure();
  // LLVM has no floats of 8 bits.
  if (isa<FloatType>(element) && pack == 4)
    element = IntegerType::get(type.getContext(), 8);
  results.append(registers / pack, pack == 1 ? element : VectorType::get({pack}, element));
  return success();
}

TileTypeConverter::TileTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion(convertTile);
  addConversion([](InFlightType type, SmallVectorImpl<Type> &results) {
    return convertTile(type.getTile(), results);
  });
  auto sharedPointer = [](Type type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), unsigned(NVVM::NVVMMemorySpace::Shared));
  };
  addConversion([=](SharedType type) { return sharedPointer(type); });
  addConversion([=](BarrierType type) { return sharedPointer(type); });
  addConversion([=](ColumnsType type) { return sharedPointer(type); });
  addConversion([](TensorPlaceType type) { return IntegerType::get(type.getContext(), 32); });
  addConversion([](SlotType type, SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
    results.append(2, IntegerType::get(type.getContext(), 32));
    return success();
  });
  addConversion([](RowsType type, SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
    results.append(type.getRowsOfLane(), IntegerType::get(type.getContext(), 64));
    return success();
  });
  addSourceMaterialization(
      [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
        return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
      });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value attn::tile::i32(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
}

Value attn::tile::i64(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

void attn::tile::emitShares(OpBuilder &b, Location loc, Value first, int64_t step, int64_t count,
                            llvm::function_ref<void(Value)> emit) {
  for (int64_t begin = 0; begin < count; begin += step) {
    OpBuilder::InsertionGuard guard(b);
    Value index = LLVM::AddOp::create(b, loc, first, i32(b, loc, begin));
    if (begin + step > count) {
      Value exists =
          LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, index, i32(b, loc, count));
      b.setInsertionPointToStart(
          scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false).thenBlock());
    }
    emit(index);
  }
}

Value attn::tile::toI32(OpBuilder &builder, Location loc, Value index) {
  if (index.getType().isInteger(32))
    return index;
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
}

Value attn::tile::addBytes(OpBuilder &builder, Location loc, Value pointer, Value bytes) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ValueRange{bytes});
}

Value attn::tile::addBytes(OpBuilder &builder, Location loc, Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

SmallVector<Value> attn::tile::unpack(OpBuilder &builder, Location loc, ValueRange values) {
  SmallVector<Value> elements;
  for (Value value : values) {
    auto type = dyn_cast<VectorType>(value.getType());
    if (!type) {
      elements.push_back(value);
      continue;
    }
    for (int64_t index = 0; index < type.getNumElements(); ++index)
      elements.push_back(
          LLVM::ExtractElementOp::create(builder, loc, value, i32(builder, loc, index)));
  }
  return elements;
}

SmallVector<Value> attn::tile::pack(OpBuilder &builder, Location loc, Type elementType,
                                    ValueRange elements) {
  int64_t pack = getPack(elementType);
  if (pack == 1)
    return SmallVector<Value>(elements);
  SmallVector<Value> values;
  auto type = VectorType::get({pack}, elementType);
  for (size_t first = 0; first < elements.size(); first += pack) {
    Value vector = LLVM::PoisonOp::create(builder, loc, type);
    for (int64_t index = 0; index < pack; ++index)
      vector = LLVM::InsertElementOp::create(builder, loc, vector, elements[first + index],
                                             i32(builder, loc, index));
    values.push_back(vector);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

const Kernel &PatternContext::getKernel(Operation *op) const {
  return kernels.find(op->getParentOfType<LLVM::LLVMFuncOp>())->second;
}

Value PatternContext::getRoleThread(OpBuilder &builder, Operation *op) const {
  int64_t first = getRole(op).firstWarpgroup * getKernel(op).machine->warpgroupThreads;
  Value thread = getKernel(op).thread;
  if (first == 0)
    return thread;
  return LLVM::SubOp::create(builder, op->getLoc(), thread, i32(builder, op->getLoc(), first));
}

Value PatternContext::getRoleWarpgroup(OpBuilder &builder, Operation *op) const {
  int64_t first = getRole(op).firstWarpgroup;
  Value warpgroup = getKernel(op).warpgroup;
  if (first == 0)
    return warpgroup;
  return LLVM::SubOp::create(builder, op->getLoc(), warpgroup, i32(builder, op->getLoc(), first));
}

/// index / divisor mod extent; the remainder is left out for the index's last digit.
static Value emitDigit(OpBuilder &builder, Location loc, Value index, const Digit &digit,
                       bool isLast) {
  Value value = index;
  if (digit.divisor > 1)
    value = LLVM::UDivOp::create(builder, loc, value, i32(builder, loc, digit.divisor));
  if (!isLast)
    value = LLVM::URemOp::create(builder, loc, value, i32(builder, loc, digit.extent));
  return value;
}

Value PatternContext::getLane(OpBuilder &builder, Operation *op) const {
  Location loc = op->getLoc();
  return LLVM::AndOp::create(builder, loc, getKernel(op).thread, i32(builder, loc, kLanes - 1));
}

ThreadPosition PatternContext::getThreadPosition(OpBuilder &builder, Operation *op,
                                                 const Layout &layout) const {
  Location loc = op->getLoc();
  Value thread = getRoleThread(builder, op);
  Value lane = LLVM::AndOp::create(builder, loc, thread, i32(builder, loc, 31));
  Value warp = LLVM::LShrOp::create(builder, loc, thread, i32(builder, loc, 5));
  ThreadPosition position{i32(builder, loc, 0), i32(builder, loc, 0)};
  for (const Digit &digit : layout.getDigits()) {
    if (digit.source == Digit::Source::Register || digit.extent == 1)
      continue;
    bool isLane = digit.source == Digit::Source::Lane;
    int64_t count = isLane ? 32 : layout.getNumWarps();
    Value value =
        emitDigit(builder, loc, isLane ? lane : warp, digit, digit.divisor * digit.extent == count);
    auto add = [&](Value &coordinate, int64_t stride) {
      if (stride == 0)
        return;
      Value step = LLVM::MulOp::create(builder, loc, value, i32(builder, loc, stride));
      coordinate = LLVM::AddOp::create(builder, loc, coordinate, step);
    };
    add(position.row, digit.rowStride);
    add(position.column, digit.columnStride);
  }
  return position;
}

Value PatternContext::getIsFirstReplica(OpBuilder &builder, Operation *op,
                                        const Layout &layout) const {
  Location loc = op->getLoc();
  Value condition;
  for (const Digit &digit : layout.getDigits()) {
    if (digit.source != Digit::Source::Lane || digit.rowStride || digit.columnStride ||
        digit.extent == 1)
      continue;
    Value lane = getLane(builder, op);
    Value value = emitDigit(builder, loc, lane, digit, digit.divisor * digit.extent == 32);
    Value isFirst =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, value, i32(builder, loc, 0));
    condition =
        condition ? LLVM::AndOp::create(builder, loc, condition, isFirst).getResult() : isFirst;
  }
  return condition;
}

void PatternContext::emitOnce(OpBuilder &builder, Operation *op,
                              llvm::function_ref<void(OpBuilder &)> body) const {
  if (getRole(op).isElected)
    return body(builder);
  Location loc = op->getLoc();
  Value isFirst = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                       getRoleThread(builder, op), i32(builder, loc, 0));
  auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body(builder);
}

void PatternContext::enterFirstOfUnit(OpBuilder &builder, Operation *op) const {
  Location loc = op->getLoc();
  const Kernel &kernel = getKernel(op);
  Value thread = LLVM::AndOp::create(builder, loc, kernel.thread,
                                     i32(builder, loc, kernel.machine->product.threads - 1));
  Value isFirst =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread, i32(builder, loc, 0));
  builder.setInsertionPointToStart(
      scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false).thenBlock());
}

//===----------------------------------------------------------------------===//
// Inline assembly
//===----------------------------------------------------------------------===//

SmallVector<Value> attn::tile::emitAsm(OpBuilder &builder, Location loc, StringRef text,
                                       StringRef constraints, ValueRange operands,
                                       TypeRange results) {
  MLIRContext *context = builder.getContext();
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (!results.empty())
    type = LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(results));
  std::string memory = constraints.str() + (constraints.empty() ? "~{memory}" : ",~{memory}");
  auto op = LLVM::InlineAsmOp::create(
      builder, loc, type ? TypeRange(type) : TypeRange(), operands, text, memory,
      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
  if (results.size() <= 1)
    return SmallVector<Value>(op->getResults());
  SmallVector<Value> values;
  for (size_t index = 0; index < results.size(); ++index)
    values.push_back(LLVM::ExtractValueOp::create(builder, loc, op->getResult(0), index));
  return values;
}

void attn::tile::emitExchange(OpBuilder &b, Location loc, Value hasBit, int64_t bit, Value &low,
                              Value &high) {
  Value given = LLVM::SelectOp::create(b, loc, hasBit, low, high);
  Value taken =
      NVVM::ShflOp::create(b, loc, given.getType(), i32(b, loc, -1), given, i32(b, loc, bit),
                           i32(b, loc, 31), NVVM::ShflKind::bfly, UnitAttr());
  low = LLVM::SelectOp::create(b, loc, hasBit, taken, low);
  high = LLVM::SelectOp::create(b, loc, hasBit, high, taken);
}

SmallVector<Value> attn::tile::emitTiedAsm(OpBuilder &builder, Location loc, StringRef text,
                                           ValueRange values) {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  std::string outputs, inputs;
  for (auto [index, value] : llvm::enumerate(values)) {
    bool isVector = isa<VectorType>(value.getType());
    operands.push_back(
        isVector ? LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), value).getResult()
                 : value);
    types.push_back(operands.back().getType());
    outputs += types.back().isF32()                         ? "=f,"
               : types.back().getIntOrFloatBitWidth() == 64 ? "=l,"
                                                            : "=r,";
    inputs += std::to_string(index) + ",";
  }
  StringRef constraints = StringRef(outputs += inputs).drop_back(values.empty() ? 0 : 1);
  SmallVector<Value> results = emitAsm(builder, loc, text, constraints, operands, types);
  for (auto [result, value] : llvm::zip_equal(results, values))
    if (isa<VectorType>(value.getType()))
      result = LLVM::BitcastOp::create(builder, loc, value.getType(), result);
  return results;
}
