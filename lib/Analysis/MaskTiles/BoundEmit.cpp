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
  case Symbol::Running:
    return environment.running;
  case Symbol::Fixed:
    break;
  }
  return 0;
}

namespace {
/// Holds what is wide.
using Number = __int128;

/// Expressions share much of their structure, so each node is evaluated once.
class Evaluator {
public:
  explicit Evaluator(const Environment &environment) : environment(environment) {}

  Number evaluate(Expr expr) {
    auto known = values.find(expr);
    if (known != values.end())
      return known->second;
    Number value = evaluateFresh(expr);
    values[expr] = value;
    return value;
  }

private:
  Number evaluateFresh(Expr expr);
  int64_t evaluateElement(Expr expr, int64_t last);
  int64_t evaluateSearch(Expr expr);

  const Environment &environment;
  DenseMap<Expr, Number> values;
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
  Number least = evaluate(expr->operands[1]);
  int64_t low = 0, high = environment.numRunning;
  while (low < high) {
    int64_t middle = (low + high) / 2, position = middle;
    if (Expr through = expr->getThrough()) {
      Environment here = environment;
      here.running = middle;
      position = attn::bound::evaluate(through, here);
    }
    if (evaluateElement(expr, position + offset) < least)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Number Evaluator::evaluateFresh(Expr expr) {
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
    Number sum = expr->constant;
    for (unsigned i = 0; i < expr->operands.size(); ++i)
      sum += expr->coefficients[i] * operand(i);
    return sum;
  }
  case Kind::FloorDiv: {
    Number dividend = operand(0), divisor = operand(1);
    if (divisor == 0)
      return 0;
    return dividend / divisor - (dividend % divisor != 0 && (dividend < 0) != (divisor < 0));
  }
  case Kind::Product:
    return operand(0) * operand(1);
  case Kind::Min:
  case Kind::Max: {
    Number best = operand(0);
    for (unsigned i = 1; i < expr->operands.size(); ++i)
      best = expr->kind == Kind::Min ? std::min(best, operand(i)) : std::max(best, operand(i));
    return best;
  }
  case Kind::Select:
    return operand(0) ? operand(1) : operand(2);
  case Kind::Clamp:
    return std::min<Number>(std::max<Number>(operand(0), expr->coefficients[0]),
                            expr->coefficients[1]);
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
  return int64_t(Evaluator(environment).evaluate(expr));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static unsigned bitsOf(Expr expr) {
  if (!expr->isWide)
    return 32;
  if (expr->kind == Kind::FloorDiv)
    return bitsOf(expr->operands[0]);
  if (expr->kind != Kind::Sum) {
    Type type = expr->value.getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    return bitsOf(tensor ? tensor.getElementType() : type);
  }
  unsigned bits = llvm::Log2_64_Ceil(std::abs(expr->constant) + 1) + 1;
  for (auto [operand, coefficient] : llvm::zip_equal(expr->operands, expr->coefficients))
    bits = std::max(bits, bitsOf(operand) + llvm::Log2_64_Ceil(std::abs(coefficient)));
  return bits + llvm::Log2_64_Ceil(expr->operands.size() + 1);
}

static Type wideType(OpBuilder &builder, unsigned bits) {
  return builder.getIntegerType(bits <= 32 ? 32 : bits <= 64 ? 64 : 128);
}

static Value signedConstant(OpBuilder &builder, Location loc, Type type, int64_t c) {
  APInt value(bitsOf(type), uint64_t(c), /*isSigned=*/true);
  return arith::ConstantOp::create(builder, loc, IntegerAttr::get(type, value));
}

/// To a type that holds the value.
static Value castSigned(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (value.getType().isIndex() || type.isIndex())
    return builder.createOrFold<arith::IndexCastOp>(loc, type, value);
  return builder.createOrFold<arith::ExtSIOp>(loc, type, value);
}

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
  // Values that are defined outside of the mask are used as they are.
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
  return tensor::ExtractOp::create(builder, loc, tensor, indices);
}

Value Emitter::emitInside(Value tensor, Value index) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  Value size = builder.createOrFold<tensor::DimOp>(loc, tensor, rank - 1);
  Value last = builder.createOrFold<arith::SubIOp>(loc, size, constant(1));
  index = builder.createOrFold<arith::MinSIOp>(loc, index, last);
  return builder.createOrFold<arith::MaxSIOp>(loc, index, constant(0));
}

static bool readsElement(Expr expr) {
  return expr->kind == Kind::Read || llvm::any_of(expr->operands, readsElement);
}

/// By a number: a shift where it is a power of two, since there are types that no target divides.
Value Emitter::emitWideQuotient(Expr expr) {
  Expr dividend = expr->operands[0];
  int64_t divisor = expr->operands[1]->constant;
  Type type = wideType(builder, bitsOf(dividend));
  Value value = castSigned(builder, loc, emitWide(dividend), type);
  if (!llvm::isPowerOf2_64(divisor))
    return builder.createOrFold<arith::FloorDivSIOp>(loc, value,
                                                     signedConstant(builder, loc, type, divisor));
  return builder.createOrFold<arith::ShRSIOp>(
      loc, value, signedConstant(builder, loc, type, llvm::Log2_64(divisor)));
}

/// A wide number is in its own type, and a wide sum or quotient in a type that holds it.
Value Emitter::emitWide(Expr expr) {
  if (expr->isWide && expr->kind == Kind::FloorDiv && expr->operands[1]->isConstant())
    return emitWideQuotient(expr);
  if (expr->kind == Kind::Scalar)
    return emitScalar(expr->value);
  if (expr->kind == Kind::Read) {
    Value index = emit(expr->operands[0]);
    if (readsElement(expr->operands[0]))
      index = emitInside(expr->value, index);
    return emitElement(expr->value, expr->leading, index);
  }
  return expr->isWide && expr->kind == Kind::Sum ? emitWideSum(expr) : emit(expr);
}

Value Emitter::emitWideSum(Expr sum) {
  Type type = wideType(builder, bitsOf(sum));
  Value total = sum->constant ? signedConstant(builder, loc, type, sum->constant) : Value();
  for (auto [operand, coefficient] : llvm::zip_equal(sum->operands, sum->coefficients)) {
    Value term = castSigned(builder, loc, emitWide(operand), type);
    if (coefficient != 1)
      term = builder.createOrFold<arith::MulIOp>(loc, term,
                                                 signedConstant(builder, loc, type, coefficient));
    total = total ? builder.createOrFold<arith::AddIOp>(loc, total, term) : term;
  }
  return total;
}

Value Emitter::emitClamp(Expr expr) {
  Value value = emitWide(expr->operands[0]);
  auto end = [&](unsigned i) {
    return signedConstant(builder, loc, value.getType(), expr->coefficients[i]);
  };
  value = builder.createOrFold<arith::MaxSIOp>(loc, value, end(0));
  value = builder.createOrFold<arith::MinSIOp>(loc, value, end(1));
  return castSigned(builder, loc, value, builder.getIndexType());
}

/// A binary search; the interval [low, high] always holds the answer.
Value Emitter::emitSearch(Expr expr) {
  Value offset = emit(expr->operands[0]);
  // `ids[i] >= x + 1` is `ids[i] > x`, which needs no type in which x + 1 fits.
  Expr bound = expr->operands[1];
  bool isStrict = bound->kind == Kind::Sum && bound->constant == 1 && bound->operands.size() == 1 &&
                  bound->coefficients[0] == 1;
  bound = isStrict ? bound->operands[0] : bound;
  auto isBelow = isStrict ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt;
  Type stored = cast<RankedTensorType>(expr->value.getType()).getElementType();
  Value least = emitWide(bound);
  Type compared = stored;
  if (least.getType() != stored) {
    compared = wideType(builder, std::max(bitsOf(bound), bitsOf(stored)));
    least = castSigned(builder, loc, least, compared);
  }
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
    Value position;
    if (Expr through = expr->getThrough()) {
      Emitter here(b, loc, mask);
      here.symbols = symbols;
      here.scalars = scalars;
      here.bind(Symbol::Running, middle);
      Value read = b.createOrFold<arith::AddIOp>(loc, here.emit(through), offset);
      position = here.emitInside(expr->value, read);
    } else {
      position = b.createOrFold<arith::AddIOp>(loc, middle, offset);
    }
    SmallVector<Value> indices(leading);
    indices.push_back(position);
    Value element = tensor::ExtractOp::create(b, loc, expr->value, indices);
    element = castSigned(b, loc, element, compared);
    Value below = arith::CmpIOp::create(b, loc, isBelow, element, least);
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
  case Kind::Scalar:
    return castSigned(builder, loc, emitScalar(expr->value), builder.getIndexType());
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
  case Kind::Clamp:
    return emitClamp(expr);
  case Kind::Read:
    return castSigned(builder, loc, emitWide(expr), builder.getIndexType());
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
