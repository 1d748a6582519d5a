//===- BoundEmit.cpp - numbers and operations of symbolic bounds ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/Bound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attn::bound {

using Kind = ExprNode::Kind;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static int64_t evaluateSymbol(Symbol symbol, const Environment &environment) {
  switch (symbol) {
  case Symbol::FixedBegin:
    return environment.fixedBegin;
  case Symbol::FixedEnd:
    return environment.fixedEnd;
  case Symbol::NumRunning:
    return environment.numRunning;
  case Symbol::Fixed:
  case Symbol::Running:
    break;
  }
  return 0;
}

namespace {
/// Expressions share much of their structure, so each node is evaluated once.
class Evaluator {
public:
  explicit Evaluator(const Environment &environment) : environment(environment) {}

  int64_t evaluate(Expr expr) {
    auto known = values.find(expr);
    if (known != values.end())
      return known->second;
    int64_t value = evaluateFresh(expr);
    values[expr] = value;
    return value;
  }

private:
  int64_t evaluateFresh(Expr expr);
  int64_t evaluateElement(Expr expr, int64_t last);
  int64_t evaluateSearch(Expr expr);

  const Environment &environment;
  DenseMap<Expr, int64_t> values;
};
} // namespace

int64_t Evaluator::evaluateElement(Expr expr, int64_t last) {
  SmallVector<int64_t> indices;
  for (Value index : expr->leading)
    indices.push_back(environment.scalar(index));
  indices.push_back(last);
  return environment.element(expr->value, indices);
}

int64_t Evaluator::evaluateSearch(Expr expr) {
  int64_t offset = evaluate(expr->operands[0]);
  int64_t least = evaluate(expr->operands[1]);
  int64_t low = 0, high = environment.numRunning;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (evaluateElement(expr, middle + offset) < least)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Sums and products wrap, as those of the ops that stand for them do.
static int64_t wrapAdd(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
static int64_t wrapMultiply(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

int64_t Evaluator::evaluateFresh(Expr expr) {
  auto operand = [&](unsigned i) { return evaluate(expr->operands[i]); };
  switch (expr->kind) {
  case Kind::Constant:
  case Kind::Bool:
    return expr->constant;
  case Kind::Symbol:
    return evaluateSymbol(expr->symbol, environment);
  case Kind::Scalar:
    return environment.scalar(expr->value);
  case Kind::Truth:
    return environment.scalar(expr->value) != 0;
  case Kind::Sum: {
    int64_t sum = expr->constant;
    for (unsigned i = 0; i < expr->operands.size(); ++i)
      sum = wrapAdd(sum, wrapMultiply(expr->coefficients[i], operand(i)));
    return sum;
  }
  case Kind::FloorDiv: {
    int64_t divisor = operand(1);
    return divisor == 0 ? 0 : llvm::divideFloorSigned(operand(0), divisor);
  }
  case Kind::Product:
    return wrapMultiply(operand(0), operand(1));
  case Kind::Min:
  case Kind::Max: {
    int64_t best = operand(0);
    for (unsigned i = 1; i < expr->operands.size(); ++i)
      best = expr->kind == Kind::Min ? std::min(best, operand(i)) : std::max(best, operand(i));
    return best;
  }
  case Kind::Select:
    return operand(0) ? operand(1) : operand(2);
  case Kind::Read:
    return evaluateElement(expr, operand(0));
  case Kind::Search:
    return evaluateSearch(expr);
  case Kind::Not:
    return !operand(0);
  case Kind::NonNegative:
    return operand(0) >= 0;
  case Kind::And:
  case Kind::Or: {
    bool isAnd = expr->kind == Kind::And;
    for (unsigned i = 0; i < expr->operands.size(); ++i)
      if (bool(operand(i)) != isAnd)
        return !isAnd;
    return isAnd;
  }
  }
  return 0;
}

int64_t evaluate(Expr expr, const Environment &environment) {
  return Evaluator(environment).evaluate(expr);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value Emitter::constant(int64_t c) {
  Value &known = constants[c];
  if (!known)
    known = arith::ConstantIndexOp::create(builder, loc, c);
  return known;
}

Value Emitter::emit(Expr expr) {
  if (Value known = emitted.lookup(expr))
    return known;
  Value value = emitFresh(expr);
  emitted[expr] = value;
  return value;
}

Value Emitter::emitTerms(Expr sum, bool negative, bool withConstant) {
  Value total;
  auto append = [&](Value term) {
    total = total ? builder.createOrFold<arith::AddIOp>(loc, total, term) : term;
  };
  for (auto [operand, coefficient] : llvm::zip_equal(sum->operands, sum->coefficients)) {
    if ((coefficient < 0) != negative)
      continue;
    Value term = emit(operand);
    if (std::abs(coefficient) != 1)
      term = builder.createOrFold<arith::MulIOp>(loc, term, constant(std::abs(coefficient)));
    append(term);
  }
  if (withConstant && sum->constant != 0 && (sum->constant < 0) == negative)
    append(constant(std::abs(sum->constant)));
  return total;
}

Value Emitter::emitSum(Expr expr) {
  Value plus = emitTerms(expr, /*negative=*/false);
  Value minus = emitTerms(expr, /*negative=*/true);
  if (!minus)
    return plus;
  return builder.createOrFold<arith::SubIOp>(loc, plus ? plus : constant(0), minus);
}

/// Compares the negative terms with the positive ones: `b - a - 1 >= 0` is `a < b`.
Value Emitter::emitNonNegative(Expr expr) {
  Expr sum = expr->operands[0];
  bool isStrict = sum->kind == Kind::Sum && sum->constant == -1;
  Value plus = sum->kind == Kind::Sum ? emitTerms(sum, false, !isStrict) : emit(sum);
  Value minus = sum->kind == Kind::Sum ? emitTerms(sum, true, !isStrict) : Value();
  return builder.createOrFold<arith::CmpIOp>(
      loc, isStrict ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sle,
      minus ? minus : constant(0), plus ? plus : constant(0));
}

Value Emitter::emitScalar(Value value) {
  if (Value mapped = scalars.lookupOrNull(value))
    return mapped;
  // What is defined outside the mask is used as it is.
  Operation *op = value.getDefiningOp();
  if (!op || !mask->isAncestor(op->getParentRegion()))
    return value;
  for (Value operand : op->getOperands())
    emitScalar(operand);
  builder.clone(*op, scalars);
  return scalars.lookup(value);
}

Value Emitter::emitElement(Value tensor, ArrayRef<Value> leading, Value last) {
  SmallVector<Value> indices;
  for (Value index : leading)
    indices.push_back(emitScalar(index));
  indices.push_back(last);
  Value element = tensor::ExtractOp::create(builder, loc, tensor, indices);
  if (element.getType().isIndex())
    return element;
  return builder.createOrFold<arith::IndexCastOp>(loc, builder.getIndexType(), element);
}

/// A binary search; the interval [low, high] always holds the answer.
Value Emitter::emitSearch(Expr expr) {
  Value offset = emit(expr->operands[0]);
  Value least = emit(expr->operands[1]);
  SmallVector<Value> leading;
  for (Value index : expr->leading)
    leading.push_back(emitScalar(index));
  Value zero = constant(0), one = constant(1), two = constant(2);
  Type index = builder.getIndexType();
  auto before = [&](OpBuilder &b, Location loc, ValueRange range) {
    Value open = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, range[0], range[1]);
    scf::ConditionOp::create(b, loc, open, range);
  };
  auto after = [&](OpBuilder &b, Location loc, ValueRange range) {
    Value sum = arith::AddIOp::create(b, loc, range[0], range[1]);
    Value middle = arith::DivUIOp::create(b, loc, sum, two);
    Value position = b.createOrFold<arith::AddIOp>(loc, middle, offset);
    SmallVector<Value> indices(leading);
    indices.push_back(position);
    Value element = tensor::ExtractOp::create(b, loc, expr->value, indices);
    if (!element.getType().isIndex())
      element = arith::IndexCastOp::create(b, loc, index, element);
    Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, element, least);
    Value next = arith::AddIOp::create(b, loc, middle, one);
    Value low = arith::SelectOp::create(b, loc, below, next, range[0]);
    Value high = arith::SelectOp::create(b, loc, below, range[1], middle);
    scf::YieldOp::create(b, loc, ValueRange{low, high});
  };
  auto loop = scf::WhileOp::create(builder, loc, TypeRange{index, index},
                                   ValueRange{zero, symbols[Symbol::NumRunning]}, before, after);
  return loop.getResult(0);
}

Value Emitter::emitFresh(Expr expr) {
  auto fold = [&]<typename Op>() {
    Value result = emit(expr->operands[0]);
    for (Expr operand : llvm::drop_begin(expr->operands))
      result = builder.createOrFold<Op>(loc, result, emit(operand));
    return result;
  };
  switch (expr->kind) {
  case Kind::Constant:
    return constant(expr->constant);
  case Kind::Symbol:
    return symbols[expr->symbol];
  case Kind::Scalar: {
    Value value = emitScalar(expr->value);
    if (value.getType().isIndex())
      return value;
    return builder.createOrFold<arith::IndexCastOp>(loc, builder.getIndexType(), value);
  }
  case Kind::Truth:
    return emitScalar(expr->value);
  case Kind::Sum:
    return emitSum(expr);
  case Kind::FloorDiv:
    // Unsigned division is a shift on every target when the divisor is a power of two.
    if (expr->operands[0]->least >= 0)
      return fold.operator()<arith::DivUIOp>();
    return fold.operator()<arith::FloorDivSIOp>();
  case Kind::Product:
    return fold.operator()<arith::MulIOp>();
  case Kind::Min:
    return fold.operator()<arith::MinSIOp>();
  case Kind::Max:
    return fold.operator()<arith::MaxSIOp>();
  case Kind::Select:
    return builder.createOrFold<arith::SelectOp>(loc, emit(expr->operands[0]),
                                                 emit(expr->operands[1]), emit(expr->operands[2]));
  case Kind::Read:
    return emitElement(expr->value, expr->leading, emit(expr->operands[0]));
  case Kind::Search:
    return emitSearch(expr);
  case Kind::Bool:
    return arith::ConstantIntOp::create(builder, loc, expr->constant, 1);
  case Kind::Not: {
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    return builder.createOrFold<arith::XOrIOp>(loc, emit(expr->operands[0]), yes);
  }
  case Kind::NonNegative:
    return emitNonNegative(expr);
  case Kind::And:
    return fold.operator()<arith::AndIOp>();
  case Kind::Or:
    return fold.operator()<arith::OrIOp>();
  }
  return {};
}

} // namespace attn::bound
