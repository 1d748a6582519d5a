//===- MutateOps.cpp - operands, order, copies and nesting of operations ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "test/Fuzz/Mutator.h"

using namespace mlir;

namespace attn::fuzz {

bool replaceOperand(Subject &subject) {
  Operation *op = subject.pickOp();
  if (op->getNumOperands() == 0)
    return false;
  OpOperand &operand = op->getOpOperand(subject.rng.below(op->getNumOperands()));
  Value value = getValue(op, operand.get().getType(), subject.rng);
  if (!value || value == operand.get())
    return false;
  operand.set(value);
  return true;
}

bool eraseOp(Operation *op, Rng &rng) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  for (Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    Value value = getValue(op, result.getType(), rng);
    if (!value)
      return false;
    result.replaceAllUsesWith(value);
  }
  op->erase();
  return true;
}

bool eraseAnyOp(Subject &subject) { return eraseOp(subject.pickOp(), subject.rng); }

bool duplicateOp(Subject &subject) {
  Operation *op = subject.pickOp();
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<FunctionOpInterface>(op))
    return false;
  Operation *copy = op->clone();
  op->getBlock()->getOperations().insertAfter(op->getIterator(), copy);
  // Every other use reads the copy.
  for (auto [old, fresh] : llvm::zip_equal(op->getResults(), copy->getResults()))
    for (OpOperand &use : llvm::make_early_inc_range(old.getUses()))
      if (use.getOwner() != copy && subject.rng.oneIn(2))
        use.set(fresh);
  return true;
}

bool moveOp(Subject &subject) {
  Operation *op = subject.pickOp();
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<FunctionOpInterface>(op))
    return false;
  if (subject.rng.oneIn(3)) {
    Operation *parent = op->getParentOp();
    if (isa<FunctionOpInterface>(parent) || !parent->getBlock())
      return false;
    op->moveBefore(parent);
    return true;
  }
  Operation *other = subject.rng.oneIn(2) ? op->getPrevNode() : op->getNextNode();
  if (!other || other->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (op->isBeforeInBlock(other))
    op->moveAfter(other);
  else
    op->moveBefore(other);
  return true;
}

/// Into the branch of an `if`, whose other branch yields other values of the same types, or into
/// a loop.
bool wrapOp(Subject &subject) {
  Operation *op = subject.pickOp();
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<FunctionOpInterface>(op) ||
      !op->getParentOfType<FunctionOpInterface>())
    return false;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  SmallVector<Value> others;
  for (Type type : op->getResultTypes())
    if (!others.emplace_back(getValue(op, type, subject.rng)))
      return false;
  auto move = [&](Block *block, Operation *around) {
    for (auto [old, fresh] : llvm::zip_equal(op->getResults(), around->getResults()))
      old.replaceAllUsesWith(fresh);
    op->moveBefore(block, block->begin());
    builder.setInsertionPointToEnd(block);
    scf::YieldOp::create(builder, loc, op->getResults());
  };
  if (subject.rng.oneIn(2)) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value end = getValue(op, builder.getIndexType(), subject.rng);
    auto loop = scf::ForOp::create(builder, loc, zero, end, one, others);
    if (others.empty())
      loop.getBody()->getTerminator()->erase();
    move(loop.getBody(), loop);
    return true;
  }
  Value condition = getValue(op, builder.getI1Type(), subject.rng);
  auto branch = scf::IfOp::create(builder, loc, op->getResultTypes(), condition,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  builder.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(builder, loc, others);
  move(branch.thenBlock(), branch);
  return true;
}

namespace {
struct ScalarOp {
  StringRef name;
  unsigned operands;
  enum { Integer, Float, Compare, CompareFloat, Select } kind;
};
} // namespace

static constexpr ScalarOp kScalarOps[] = {
    {"arith.addi", 2, ScalarOp::Integer},      {"arith.subi", 2, ScalarOp::Integer},
    {"arith.muli", 2, ScalarOp::Integer},      {"arith.divsi", 2, ScalarOp::Integer},
    {"arith.divui", 2, ScalarOp::Integer},     {"arith.remsi", 2, ScalarOp::Integer},
    {"arith.remui", 2, ScalarOp::Integer},     {"arith.floordivsi", 2, ScalarOp::Integer},
    {"arith.ceildivsi", 2, ScalarOp::Integer}, {"arith.andi", 2, ScalarOp::Integer},
    {"arith.ori", 2, ScalarOp::Integer},       {"arith.xori", 2, ScalarOp::Integer},
    {"arith.shli", 2, ScalarOp::Integer},      {"arith.shrsi", 2, ScalarOp::Integer},
    {"arith.shrui", 2, ScalarOp::Integer},     {"arith.maxsi", 2, ScalarOp::Integer},
    {"arith.minui", 2, ScalarOp::Integer},     {"arith.minsi", 2, ScalarOp::Integer},
    {"math.absi", 1, ScalarOp::Integer},       {"math.ctpop", 1, ScalarOp::Integer},
    {"arith.addf", 2, ScalarOp::Float},        {"arith.subf", 2, ScalarOp::Float},
    {"arith.mulf", 2, ScalarOp::Float},        {"arith.divf", 2, ScalarOp::Float},
    {"arith.remf", 2, ScalarOp::Float},        {"arith.maximumf", 2, ScalarOp::Float},
    {"arith.minnumf", 2, ScalarOp::Float},     {"arith.negf", 1, ScalarOp::Float},
    {"math.tanh", 1, ScalarOp::Float},         {"math.exp", 1, ScalarOp::Float},
    {"math.exp2", 1, ScalarOp::Float},         {"math.log", 1, ScalarOp::Float},
    {"math.sin", 1, ScalarOp::Float},          {"math.sqrt", 1, ScalarOp::Float},
    {"math.erf", 1, ScalarOp::Float},          {"math.absf", 1, ScalarOp::Float},
    {"math.powf", 2, ScalarOp::Float},         {"math.fma", 3, ScalarOp::Float},
    {"arith.cmpi", 2, ScalarOp::Compare},      {"arith.cmpi", 2, ScalarOp::Compare},
    {"arith.cmpf", 2, ScalarOp::CompareFloat}, {"arith.select", 3, ScalarOp::Select},
    {"arith.select", 3, ScalarOp::Select}};

/// Computes something from values of the region, and mostly has a later use read it.
bool insertScalarOp(Subject &subject) {
  Operation *at = subject.pickOp();
  if (at->getNumOperands() == 0 || !at->getParentOfType<FunctionOpInterface>())
    return false;
  OpOperand &use = at->getOpOperand(subject.rng.below(at->getNumOperands()));
  Type result = use.get().getType(), element = getElementTypeOrSelf(result);
  if (!element.isIntOrIndexOrFloat() || isa<MemRefType>(result))
    return false;
  const ScalarOp &scalar = kScalarOps[subject.rng.below(std::size(kScalarOps))];
  Builder builder(at->getContext());
  Type operands = result;
  OperationState state(at->getLoc(), scalar.name);
  if (scalar.kind == ScalarOp::Integer ? isa<FloatType>(element)
                                       : scalar.kind == ScalarOp::Float && !isa<FloatType>(element))
    return false;
  if (scalar.kind == ScalarOp::Compare || scalar.kind == ScalarOp::CompareFloat) {
    if (!result.isInteger(1))
      return false;
    bool isFloat = scalar.kind == ScalarOp::CompareFloat;
    operands = isFloat                ? Type(builder.getF32Type())
               : subject.rng.oneIn(4) ? Type(builder.getI32Type())
                                      : builder.getIndexType();
    state.addAttribute("predicate",
                       builder.getI64IntegerAttr(subject.rng.below(isFloat ? 16 : 10)));
  }
  for (unsigned i = 0; i < scalar.operands; ++i) {
    Type type = i == 0 && scalar.kind == ScalarOp::Select ? builder.getI1Type() : operands;
    Value value = i == 0 && type == result && subject.rng.oneIn(2)
                      ? use.get()
                      : getValue(at, type, subject.rng);
    if (!value)
      return false;
    state.addOperands(value);
  }
  state.addTypes(result);
  Operation *made = OpBuilder(at).create(state);
  if (!subject.rng.oneIn(6))
    use.set(made->getResult(0));
  return true;
}

/// Renames a function, hides it, or declares another.
bool changeSymbol(Subject &subject) {
  static constexpr StringRef kNames[] = {"exp", "tanhf", "malloc", "main",      "memcpy",
                                         "f-1", "free",  "printf", "_mlir_f",   "memrefCopy",
                                         "a b", "expf",  "kernel", "\xc3\xa9t", "x.y"};
  SmallVector<func::FuncOp> functions(subject.module.getOps<func::FuncOp>());
  if (functions.empty())
    return false;
  func::FuncOp function = subject.rng.pick(functions);
  StringRef name = kNames[subject.rng.below(std::size(kNames))];
  if (subject.module.lookupSymbol(name))
    return false;
  if (subject.rng.oneIn(3)) {
    OpBuilder builder(function);
    auto type = function.getFunctionType();
    if (subject.rng.oneIn(2))
      type = builder.getFunctionType({subject.rng.pick(subject.corpus.types)},
                                     {subject.rng.pick(subject.corpus.types)});
    func::FuncOp::create(builder, function.getLoc(), name, type).setPrivate();
    return true;
  }
  if (subject.rng.oneIn(2)) {
    function.setVisibility(function.isPublic() ? SymbolTable::Visibility::Private
                                               : SymbolTable::Visibility::Public);
    return true;
  }
  if (failed(SymbolTable::replaceAllSymbolUses(
          function, StringAttr::get(function.getContext(), name), subject.module)))
    return false;
  function.setName(name);
  return true;
}

bool addArgument(Subject &subject) {
  SmallVector<func::FuncOp> functions(subject.module.getOps<func::FuncOp>());
  if (functions.empty())
    return false;
  func::FuncOp function = subject.rng.pick(functions);
  if (function.isExternal())
    return false;
  // Calls of it have one operand less then, which the verifier tells.
  Type type = subject.rng.pick(subject.corpus.types);
  if (auto tensor = dyn_cast<TensorType>(type); tensor && subject.rng.oneIn(8))
    type = UnrankedTensorType::get(tensor.getElementType());
  return succeeded(function.insertArgument(subject.rng.below(function.getNumArguments() + 1), type,
                                           DictionaryAttr(), function.getLoc()));
}

} // namespace attn::fuzz
