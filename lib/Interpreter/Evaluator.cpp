//===- Evaluator.cpp - functions, loops and scalars -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/Evaluator.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ScopeExit.h"

using namespace llvm;
using namespace mlir;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------------------------===//

Expected<Lane> Evaluator::getLane(Operation *op, mlir::Value value, Frame &frame) {
  const RuntimeValue &found = frame.find(value)->second;
  if (found.isUnknown())
    return makeOpError(op, "expected a number, got one that depends on a tensor without data");
  return found.getScalar();
}

Expected<int64_t> Evaluator::getIndex(Operation *op, OpFoldResult value, Frame &frame) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return cast<IntegerAttr>(attribute).getInt();
  Expected<Lane> lane = getLane(op, cast<mlir::Value>(value), frame);
  return lane ? Expected<int64_t>(lane->i) : lane.takeError();
}

Expected<double> Evaluator::getReal(Operation *op, mlir::Value value, Frame &frame) {
  Expected<Lane> lane = getLane(op, value, frame);
  return lane ? Expected<double>(lane->f) : lane.takeError();
}

Expected<Evaluator::Indices> Evaluator::getIndices(Operation *op, ArrayRef<OpFoldResult> values,
                                                   Frame &frame) {
  Indices indices;
  for (OpFoldResult value : values) {
    Expected<int64_t> index = getIndex(op, value, frame);
    if (!index)
      return index.takeError();
    indices.push_back(*index);
  }
  return indices;
}

Error Evaluator::set(Operation *op, mlir::Value result, RuntimeValue value, Frame &frame) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type && !result.getType().isIntOrIndexOrFloat())
    return makeOpError(op, "expected values of ranked tensors and numbers");
  if (value.isTensor() != bool(type))
    return makeOpError(op, type ? "expected a tensor, got a number"
                                : "expected a number, got a tensor");
  if (type) {
    const DenseTensor &tensor = *value.getTensor();
    bool agrees = tensor.getShape().size() == size_t(type.getRank()) &&
                  tensor.isFloat() == isFloatElement(type);
    for (auto [expected, got] : zip(type.getShape(), tensor.getShape()))
      agrees &= ShapedType::isDynamic(expected) || expected == got;
    if (!agrees) {
      std::string text;
      raw_string_ostream(text) << "expected " << type << ", got a tensor of "
                               << (tensor.isFloat() ? "floats" : "integers") << " of shape "
                               << formatShape(tensor.getShape());
      return makeOpError(op, text);
    }
  }
  frame[result] = std::move(value);
  return Error::success();
}

//===----------------------------------------------------------------------------------------===//
// Functions and blocks
//===----------------------------------------------------------------------------------------===//

Expected<std::vector<RuntimeValue>> Evaluator::call(func::FuncOp function,
                                                    ArrayRef<RuntimeValue> arguments) {
  constexpr int maxDepth = 64;
  if (!function.getBody().hasOneBlock())
    return makeOpError(function, "expected a body of one block");
  if (arguments.size() != function.getNumArguments())
    return makeOpError(function, "expected " + Twine(function.getNumArguments()) +
                                     " arguments, got " + Twine(arguments.size()));
  if (++callDepth > maxDepth)
    return makeOpError(function, "expected calls at most " + Twine(maxDepth) + " deep");
  llvm::scope_exit leave([&] { --callDepth; });
  Frame frame;
  Expected<Values> results = runBlock(function.getBody().front(), arguments, frame);
  if (!results)
    return results.takeError();
  return std::vector<RuntimeValue>(results->begin(), results->end());
}

/// Runs a block; the result is what its terminator passes on.
Expected<Evaluator::Values> Evaluator::runBlock(Block &block, ArrayRef<RuntimeValue> arguments,
                                                Frame &frame) {
  for (auto [argument, value] : zip_equal(block.getArguments(), arguments))
    if (Error error = set(block.getParentOp(), argument, value, frame))
      return std::move(error);
  for (Operation &op : block.without_terminator())
    if (Error error = execute(&op, frame))
      return std::move(error);
  Values results;
  for (mlir::Value operand : block.getTerminator()->getOperands())
    results.push_back(frame.find(operand)->second);
  return results;
}

Error Evaluator::count(Operation *op) {
  if (++numOperations <= options.maxOperations)
    return Error::success();
  return makeOpError(op, "expected an end after " + Twine(options.maxOperations) + " operations");
}

Error Evaluator::execute(Operation *op, Frame &frame) {
  if (Error error = count(op))
    return error;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return executeFor(loop, frame);
  if (auto grid = dyn_cast<scf::ForallOp>(op))
    return executeForall(grid, frame);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return executeWhile(loop, frame);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Expected<int64_t> condition = getIndex(op, branch.getCondition(), frame);
    if (!condition)
      return condition.takeError();
    Block *block = *condition ? branch.thenBlock() : branch.elseBlock();
    if (!block)
      return Error::success();
    Expected<Values> values = runBlock(*block, {}, frame);
    return values ? setResults(op, *values, frame) : values.takeError();
  }
  if (auto callOp = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, callOp.getCalleeAttr());
    if (!callee || callee.isExternal())
      return makeOpError(op, "expected a function with a body");
    Values arguments;
    for (mlir::Value operand : op->getOperands())
      arguments.push_back(frame.find(operand)->second);
    Expected<std::vector<RuntimeValue>> values = call(callee, arguments);
    return values ? setResults(op, *values, frame) : values.takeError();
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return executeAffine(op, apply.getAffineMap(), apply.getMapOperands(), frame);
  if (auto min = dyn_cast<affine::AffineMinOp>(op))
    return executeAffine(op, min.getAffineMap(), min.getOperands(), frame);
  if (auto max = dyn_cast<affine::AffineMaxOp>(op))
    return executeAffine(op, max.getAffineMap(), max.getOperands(), frame);
  for (auto family : {&Evaluator::executeTensorOp, &Evaluator::executeAttnOp,
                      &Evaluator::executeGradOp, &Evaluator::executeGradStep}) {
    Expected<bool> isDone = (this->*family)(op, frame);
    if (!isDone || *isDone)
      return isDone.takeError();
  }
  return executeScalar(op, frame);
}

//===----------------------------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------------------------===//

Error Evaluator::executeFor(scf::ForOp op, Frame &frame) {
  Expected<Indices> bounds =
      getIndices(op, {op.getLowerBound(), op.getUpperBound(), op.getStep()}, frame);
  if (!bounds)
    return bounds.takeError();
  int64_t index = (*bounds)[0], end = (*bounds)[1], step = (*bounds)[2];
  if (op.getUnsignedCmp() || step <= 0)
    return makeOpError(op, "expected a signed loop with a step above 0");
  Values state;
  for (mlir::Value init : op.getInitArgs())
    state.push_back(frame.find(init)->second);
  while (index < end) {
    state.insert(state.begin(), RuntimeValue::integer(index));
    Expected<Values> next = runBlock(*op.getBody(), state, frame);
    if (!next)
      return next.takeError();
    state = std::move(*next);
    if (AddOverflow(index, step, index))
      break;
    if (Error error = count(op))
      return error;
  }
  return setResults(op, state, frame);
}

Error Evaluator::executeWhile(scf::WhileOp op, Frame &frame) {
  Values state;
  for (mlir::Value init : op.getInits())
    state.push_back(frame.find(init)->second);
  while (true) {
    Expected<Values> before = runBlock(*op.getBeforeBody(), state, frame);
    if (!before)
      return before.takeError();
    Expected<int64_t> condition = getIndex(op, op.getConditionOp().getCondition(), frame);
    if (!condition)
      return condition.takeError();
    state.assign(before->begin() + 1, before->end());
    if (!*condition)
      break;
    Expected<Values> after = runBlock(*op.getAfterBody(), state, frame);
    if (!after)
      return after.takeError();
    state = std::move(*after);
    if (Error error = count(op))
      return error;
  }
  return setResults(op, state, frame);
}

/// The blocks of a grid are independent, so one after the other is as good an order as any. Each
/// writes its part of the results when it ends.
Error Evaluator::executeForall(scf::ForallOp op, Frame &frame) {
  Expected<Indices> lower = getIndices(op, op.getMixedLowerBound(), frame);
  Expected<Indices> upper = getIndices(op, op.getMixedUpperBound(), frame);
  Expected<Indices> step = getIndices(op, op.getMixedStep(), frame);
  if (!lower || !upper || !step)
    return joinErrors(joinErrors(lower.takeError(), upper.takeError()), step.takeError());
  size_t rank = lower->size();
  bool isEmpty = false;
  for (size_t dim = 0; dim < rank; ++dim) {
    if ((*step)[dim] <= 0)
      return makeOpError(op, "expected steps above 0, got " + Twine((*step)[dim]));
    isEmpty |= (*lower)[dim] >= (*upper)[dim];
  }
  Values shared;
  for (mlir::Value output : op.getOutputs())
    shared.push_back(std::make_shared<DenseTensor>(*getTensor(output, frame)));
  Indices index(*lower);
  while (!isEmpty) {
    Values arguments;
    for (int64_t i : index)
      arguments.push_back(RuntimeValue::integer(i));
    append_range(arguments, shared);
    Expected<Values> none = runBlock(*op.getBody(), arguments, frame);
    if (!none)
      return none.takeError();
    for (Operation &yielding : op.getTerminator().getYieldingOps()) {
      auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(yielding);
      if (!insert)
        return makeOpError(&yielding, "expected tensor.parallel_insert_slice");
      Expected<Slice> slice = getSlice(insert, frame);
      if (!slice)
        return slice.takeError();
      if (Error error = insertSlice(insert, insert.getSource(), getTensor(insert.getDest(), frame),
                                    *slice, frame))
        return error;
    }
    size_t dim = rank;
    while (dim > 0) {
      index[dim - 1] += (*step)[dim - 1];
      if (index[dim - 1] < (*upper)[dim - 1])
        break;
      index[dim - 1] = (*lower)[dim - 1];
      --dim;
    }
    if (dim == 0)
      break;
    if (Error error = count(op))
      return error;
  }
  return setResults(op, shared, frame);
}

//===----------------------------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------------------------===//

/// arith and math, on numbers or on all elements of tensors.
Error Evaluator::executeScalar(Operation *op, Frame &frame) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Expected<RuntimeValue> value = evaluateConstant(constant.getValue(), options.exactConstants);
    if (!value)
      return makeOpError(op, value.takeError());
    return set(op, constant, *value, frame);
  }
  if (op->getNumResults() == 0)
    return makeOpError(op, "expected an op that the interpreter knows");
  for (OpResult result : op->getResults())
    if (Error error = executeScalar(result, frame))
      return error;
  return Error::success();
}

Error Evaluator::executeScalar(OpResult output, Frame &frame) {
  Operation *op = output.getOwner();
  auto known = scalarOps.find(output);
  if (known == scalarOps.end()) {
    Expected<ScalarOp> compiled = compileScalarResult(output);
    if (!compiled)
      return compiled.takeError();
    known = scalarOps.try_emplace(output, *compiled).first;
  }
  SmallVector<Lane, 4> scalars;
  SmallVector<const Lane *, 4> operands;
  TensorRef like;
  bool isKnown = true;
  scalars.reserve(op->getNumOperands());
  for (mlir::Value operand : op->getOperands()) {
    const RuntimeValue &value = frame.find(operand)->second;
    isKnown &= !value.isUnknown();
    if (value.isTensor()) {
      if (like && like->getShape() != value.getTensor()->getShape())
        return makeOpError(op, "expected tensors of one shape, got " +
                                   formatShape(like->getShape()) + " and " +
                                   formatShape(value.getTensor()->getShape()));
      like = value.getTensor();
      isKnown &= like->hasData();
      operands.push_back(like->data());
    } else {
      scalars.push_back(value.isScalar() ? value.getScalar() : Lane());
      operands.push_back(&scalars.back());
    }
  }
  if (!like) {
    Lane result = {.i = 0};
    if (!isKnown)
      return set(op, output, RuntimeValue(), frame);
    if (const char *why = known->second.run(&result, operands.data(), 1))
      return makeOpError(op, Twine("undefined: ") + why);
    return set(op, output, result, frame);
  }
  if (!scalars.empty())
    return makeOpError(op, "expected tensors only, got a number among them");
  Expected<TensorRef> result = allocate(op, output.getType(), like->getShape(), isKnown);
  if (!result)
    return result.takeError();
  if ((*result)->hasData())
    if (const char *why = known->second.run((*result)->data(), operands.data(), like->size()))
      return makeOpError(op, Twine("undefined: ") + why);
  return set(op, output, *result, frame);
}

/// Nothing when a divisor is not above 0.
static std::optional<int64_t> evaluate(AffineExpr expr, unsigned numDims,
                                       ArrayRef<int64_t> values) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return values[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return values[numDims + symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> a = evaluate(binary.getLHS(), numDims, values);
  std::optional<int64_t> b = evaluate(binary.getRHS(), numDims, values);
  if (!a || !b)
    return std::nullopt;
  AffineExprKind kind = expr.getKind();
  if (kind == AffineExprKind::Add || kind == AffineExprKind::Mul) {
    int64_t result = 0;
    bool overflow =
        kind == AffineExprKind::Add ? AddOverflow(*a, *b, result) : MulOverflow(*a, *b, result);
    return overflow ? std::nullopt : std::optional(result);
  }
  if (*b <= 0)
    return std::nullopt;
  int64_t remainder = *a % *b, quotient = *a / *b;
  if (kind == AffineExprKind::Mod)
    return remainder < 0 ? remainder + *b : remainder;
  return kind == AffineExprKind::CeilDiv ? quotient + (remainder > 0) : quotient - (remainder < 0);
}

Error Evaluator::executeAffine(Operation *op, AffineMap map, OperandRange operands, Frame &frame) {
  Expected<Indices> values = getIndices(op, getAsOpFoldResult(operands), frame);
  if (!values)
    return values.takeError();
  std::optional<int64_t> best;
  for (AffineExpr expr : map.getResults()) {
    std::optional<int64_t> value = evaluate(expr, map.getNumDims(), *values);
    if (!value)
      return makeOpError(op, "undefined: a divisor below 1, or overflow");
    if (!best)
      best = value;
    best = isa<affine::AffineMaxOp>(op) ? std::max(*best, *value) : std::min(*best, *value);
  }
  return set(op, op->getResult(0), RuntimeValue::integer(*best), frame);
}

} // namespace attn
