//===- MaskReader.cpp - a mask region as a disjunction ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/MaskReader.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/MaskTiles/Narrow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::bound;

namespace attn {

using Kind = ExprNode::Kind;

/// b follows from a.
bool MaskReader::implies(Expr a, Expr b) {
  if (a == b)
    return true;
  return !isBoolean(a) && !isBoolean(b) && pool.sub(b, a)->least >= 0;
}

/// False when the conjunction became false.
bool MaskReader::addLiteral(Conjunction &conjunction, Expr literal) {
  for (Expr other : conjunction) {
    if (isBoolean(literal) != isBoolean(other))
      continue;
    if (implies(other, literal))
      return true;
    if (isBoolean(literal)) {
      if ((literal->kind == Kind::Not && literal->operands[0] == other) ||
          (other->kind == Kind::Not && other->operands[0] == literal))
        return false;
    } else if (pool.add(other, literal)->greatest < 0) {
      return false;
    }
  }
  llvm::erase_if(conjunction, [&](Expr other) { return implies(literal, other); });
  conjunction.push_back(literal);
  return true;
}

Disjunction MaskReader::both(const Disjunction &a, const Disjunction &b) {
  Disjunction result;
  for (const Conjunction &left : a)
    for (const Conjunction &right : b) {
      Conjunction conjunction = left;
      if (!llvm::all_of(right, [&](Expr literal) { return addLiteral(conjunction, literal); }))
        continue;
      result = either(result, {conjunction});
      // Dropping a factor covers more, which is allowed.
      if (result.size() > maxDisjuncts) {
        exact = false;
        return a.size() <= b.size() ? a : b;
      }
    }
  return result;
}

Disjunction MaskReader::either(const Disjunction &a, const Disjunction &b) {
  // `x` is within `y` when each literal of y follows from one of x.
  auto within = [&](const Conjunction &x, const Conjunction &y) {
    return llvm::all_of(y, [&](Expr literal) {
      return llvm::any_of(x, [&](Expr other) { return implies(other, literal); });
    });
  };
  Disjunction result = a;
  for (const Conjunction &conjunction : b) {
    if (llvm::any_of(result, [&](auto &other) { return within(conjunction, other); }))
      continue;
    llvm::erase_if(result, [&](auto &other) { return within(other, conjunction); });
    result.push_back(conjunction);
  }
  return result;
}

Disjunction MaskReader::exclusive(Value a, Value b, bool polarity) {
  return either(both(read(a, true), read(b, !polarity)), both(read(a, false), read(b, polarity)));
}

Disjunction MaskReader::readFresh(Value keep, bool polarity) {
  APInt constant;
  if (matchPattern(keep, m_ConstantInt(&constant)))
    return constant.isZero() == polarity ? Disjunction{} : Disjunction{{}};
  if (!isPositional(keep))
    return {{pool.truth(keep, !polarity)}};
  Operation *op = keep.getDefiningOp();
  if (auto compared = dyn_cast_or_null<arith::CmpIOp>(op))
    return compare(compared, polarity);
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    Disjunction left = read(op->getOperand(0), polarity);
    Disjunction right = read(op->getOperand(1), polarity);
    return isa<arith::AndIOp>(op) == polarity ? both(left, right) : either(left, right);
  }
  if (isa_and_nonnull<arith::XOrIOp>(op))
    return exclusive(op->getOperand(0), op->getOperand(1), polarity);
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    Value condition = select.getCondition();
    return either(both(read(condition, true), read(select.getTrueValue(), polarity)),
                  both(read(condition, false), read(select.getFalseValue(), polarity)));
  }
  return anything();
}

Disjunction MaskReader::compare(arith::CmpIOp op, bool polarity) {
  using Predicate = arith::CmpIPredicate;
  Value a = op.getLhs(), b = op.getRhs();
  Predicate predicate = op.getPredicate();
  if (!polarity)
    predicate = arith::invertPredicate(predicate);
  if (a.getType().isInteger(1)) {
    if (predicate == Predicate::eq || predicate == Predicate::ne)
      return exclusive(a, b, predicate == Predicate::ne);
    return anything();
  }
  auto natural = [&](Value value) {
    Expr expr = translate(value);
    return expr && expr->least >= 0;
  };
  bool isUnsigned = predicate == Predicate::ult || predicate == Predicate::ule ||
                    predicate == Predicate::ugt || predicate == Predicate::uge;
  if (isUnsigned && !(natural(a) && natural(b)))
    return anything();
  switch (predicate) {
  case Predicate::eq:
    return both(atLeast(a, b, 0), atLeast(b, a, 0));
  case Predicate::ne:
    return either(atLeast(a, b, 1), atLeast(b, a, 1));
  case Predicate::sge:
  case Predicate::uge:
    return atLeast(a, b, 0);
  case Predicate::sgt:
  case Predicate::ugt:
    return atLeast(a, b, 1);
  case Predicate::sle:
  case Predicate::ule:
    return atLeast(b, a, 0);
  case Predicate::slt:
  case Predicate::ult:
    return atLeast(b, a, 1);
  }
  return anything();
}

std::optional<Disjunction> MaskReader::splitCases(Value value, bool isLeft,
                                                  function_ref<Disjunction(Value)> with) {
  Operation *op = value.getDefiningOp();
  if (!op || !isPositional(value) || caseBudget == 0)
    return std::nullopt;
  // Casts that keep the order and the value.
  if (isa<arith::ExtSIOp>(op) || (isa<arith::IndexCastOp>(op) && value.getType().isIndex()))
    return splitCases(op->getOperand(0), isLeft, with);
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) {
    --caseBudget;
    Disjunction first = with(op->getOperand(0)), second = with(op->getOperand(1));
    return isa<arith::MaxSIOp>(op) == isLeft ? either(first, second) : both(first, second);
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    --caseBudget;
    Value condition = select.getCondition();
    return either(both(read(condition, true), with(select.getTrueValue())),
                  both(read(condition, false), with(select.getFalseValue())));
  }
  return std::nullopt;
}

Disjunction MaskReader::atLeast(Value a, Value b, int64_t slack) {
  if (auto cases = splitCases(a, true, [&](Value x) { return atLeast(x, b, slack); }))
    return *cases;
  if (auto cases = splitCases(b, false, [&](Value x) { return atLeast(a, x, slack); }))
    return *cases;
  Expr left = translate(a), right = translate(b);
  if (!left || !right)
    return anything();
  Expr literal = narrowLiteral(pool, pool.add(pool.sub(left, right), -slack));
  if (!literal)
    return anything();
  if (literal->least >= 0)
    return {{}};
  if (literal->greatest < 0)
    return {};
  return {{literal}};
}

//===----------------------------------------------------------------------===//
// Integers of the region
//===----------------------------------------------------------------------===//

bool MaskReader::isPositional(Value value) {
  if (value == fixed || value == running)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !mask.isAncestor(op->getParentRegion()))
    return false;
  auto [known, inserted] = positional.try_emplace(value, true);
  if (!inserted)
    return known->second;
  // A value that cannot be cloned to the start of the block counts as positional.
  bool result = op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
                llvm::any_of(op->getOperands(), [&](Value v) { return isPositional(v); });
  positional[value] = result;
  return result;
}

Expr MaskReader::scalar(Value value, int64_t least, int64_t greatest) {
  unsigned width = bitsOf(value.getType());
  int64_t limit = width > 62 ? unbounded : int64_t(1) << (width - 1);
  return pool.scalar(value, std::max(least, -limit), std::min(greatest, limit));
}

static bool isSumOfScalars(Expr expr) {
  auto isScalar = [](Expr e) { return e->kind == Kind::Scalar; };
  return isScalar(expr) || (expr->kind == Kind::Sum && llvm::all_of(expr->operands, isScalar));
}

/// The largest absolute value, index scalars counted as positions.
static int64_t magnitude(Expr expr) {
  if (expr->kind == Kind::Scalar && expr->value.getType().isIndex())
    return positionLimit;
  if (expr->kind != Kind::Sum)
    return std::max(std::abs(expr->least), std::abs(expr->greatest));
  __int128 total = std::abs(expr->constant);
  for (auto [operand, coefficient] : llvm::zip_equal(expr->operands, expr->coefficients))
    total += __int128(std::abs(coefficient)) * magnitude(operand);
  return total > unbounded ? unbounded : int64_t(total);
}

/// Whether the operations of `type` that made `expr` cannot have wrapped. Index and 64-bit
/// arithmetic on positions is taken not to.
bool MaskReader::fits(Expr expr, Type type) {
  if (type.isIndex() || type.getIntOrFloatBitWidth() >= 64)
    return true;
  return magnitude(expr) < int64_t(1) << (type.getIntOrFloatBitWidth() - 1);
}

using Bounds = std::pair<int64_t, int64_t>;

/// Constants that bound a value, if it is no larger than positions: those of #attn.positions.
static std::optional<Bounds> findPositionBounds(Value value) {
  std::optional<Bounds> bounds = bound::findConstantBounds(value);
  bool isPosition = bounds && bounds->first >= -positionLimit && bounds->second <= positionLimit;
  return isPosition ? bounds : std::nullopt;
}

/// Whether the value is a tensor's extent, counts parts or something of it in a loop, or is made of
/// such by what tiling writes, or is at most one: then it is no larger than positions.
static bool isExtent(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
    std::optional<SmallVector<Value>> counts = loop ? loop.getLoopInductionVars() : std::nullopt;
    return counts && llvm::is_contained(*counts, value);
  }
  Operation *op = value.getDefiningOp();
  if (isa<affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp>(op))
    return llvm::all_of(op->getOperands(), isExtent);
  if (isa<arith::MinUIOp>(op))
    return llvm::any_of(op->getOperands(), isExtent);
  return findPositionBounds(value) || isa<tensor::DimOp, CountPartsOp>(op);
}

/// The bounds that are known of a scalar.
static Bounds findScalarBounds(Value value) {
  if (value.getDefiningOp<tensor::DimOp>())
    return {0, positionLimit};
  if (auto bounds = findPositionBounds(value))
    return *bounds;
  int64_t limit = isExtent(value) ? positionLimit : unbounded;
  return {-limit, limit};
}

Expr MaskReader::translate(Value value) {
  auto [known, inserted] = translated.try_emplace(value, nullptr);
  if (!inserted)
    return known->second;
  Type type = value.getType();
  if (!type.isIndex() &&
      !(type.isInteger() && !type.isInteger(1) && type.getIntOrFloatBitWidth() <= 64))
    return nullptr;
  Expr result = nullptr;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) && constant.abs().ult(uint64_t(1) << 40))
    result = pool.constant(constant.getSExtValue());
  else if (value == fixed)
    result = pool.symbol(Symbol::Fixed);
  else if (value == running)
    result = pool.symbol(Symbol::Running);
  else if (value == mask.getArgument(0) || value == mask.getArgument(1))
    result = scalar(value, 0, positionLimit);
  else if (Operation *op = value.getDefiningOp())
    result = translateOp(op);
  if (!result && !isPositional(value)) {
    auto [least, greatest] = findScalarBounds(value);
    result = scalar(value, least, greatest);
  }
  // Of what is constant in a block, only sums are taken apart where that may lose digits.
  if (result && result->isWide && !isSumOfScalars(result) && !isPositional(value))
    result = scalar(value, result->least, result->greatest);
  translated[value] = result;
  return result;
}

Expr MaskReader::translateOp(Operation *op) {
  if (!mask.isAncestor(op->getParentRegion()) || op->getNumResults() != 1)
    return nullptr;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return translateRead(extract);
  if (!isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
    return nullptr;
  Type type = op->getResult(0).getType();
  SmallVector<Expr, 2> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(translate(operand));
    if (!operands.back())
      return nullptr;
  }
  Expr a = operands.empty() ? nullptr : operands[0];
  Expr b = operands.size() < 2 ? nullptr : operands[1];
  bool natural = llvm::all_of(operands, [](Expr e) { return e->least >= 0; });

  Expr result = nullptr;
  if (isa<arith::ExtSIOp>(op) || (isa<arith::ExtUIOp>(op) && natural))
    return a;
  if (isa<arith::IndexCastOp, arith::TruncIOp>(op) || (isa<arith::IndexCastUIOp>(op) && natural))
    return fits(a, type) ? a : nullptr;
  if (isa<arith::MaxSIOp>(op) || (isa<arith::MaxUIOp>(op) && natural))
    return pool.max({a, b});
  if (isa<arith::MinSIOp>(op) || (isa<arith::MinUIOp>(op) && natural))
    return pool.min({a, b});
  if (isa<arith::AddIOp>(op)) {
    result = pool.add(a, b);
  } else if (isa<arith::SubIOp>(op)) {
    result = pool.sub(a, b);
  } else if (isa<arith::MulIOp>(op)) {
    if (a->isConstant())
      std::swap(a, b);
    if (!b->isConstant())
      return nullptr;
    result = pool.scale(a, b->constant);
  } else {
    return translateDivision(op);
  }
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  bool cannotWrap = flags && flags.hasNoSignedWrap();
  return cannotWrap || fits(result, type) ? result : nullptr;
}

Expr MaskReader::translateDivision(Operation *op) {
  bool isFloor = isa<arith::FloorDivSIOp>(op), isCeil = isa<arith::CeilDivSIOp>(op);
  bool isQuotient = isa<arith::DivSIOp, arith::DivUIOp>(op);
  bool isRemainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  if (!isFloor && !isCeil && !isQuotient && !isRemainder)
    return nullptr;
  Expr a = translate(op->getOperand(0)), b = translate(op->getOperand(1));
  // Rounding to zero is rounding down for what is not negative.
  if (!isFloor && !isCeil && a->least < 0)
    return nullptr;
  if (!b->isConstant()) {
    // An unsigned divisor is a size: not zero, and small enough to be positive.
    Value divisor = op->getOperand(1);
    if (!isa<arith::DivUIOp, arith::RemUIOp>(op) || b->kind != Kind::Scalar ||
        isPositional(divisor) || a->isWide || a->greatest >= narrowLimit)
      return nullptr;
    // All divisors that are larger than what they divide give 0.
    b = pool.clamp(b, 1, llvm::alignTo(a->greatest + 1, limitStep));
  } else if (b->constant <= 0) {
    return nullptr;
  }
  if (isCeil)
    return b->isConstant() ? pool.ceilDiv(a, b->constant) : nullptr;
  Expr quotient = pool.floorDiv(a, b);
  return isRemainder ? pool.sub(a, pool.product(b, quotient)) : quotient;
}

Expr MaskReader::translateRead(tensor::ExtractOp op) {
  Value tensor = op.getTensor();
  if (op.getIndices().empty() || !factOf || !isPositional(op.getIndices().back()) ||
      llvm::any_of(op.getIndices().drop_back(), [&](Value v) { return isPositional(v); }))
    return nullptr;
  Operation *definition = tensor.getDefiningOp();
  if (definition && mask.isAncestor(definition->getParentRegion()))
    return nullptr;
  if (factOf(tensor) != TensorFact::NonDecreasing)
    return nullptr;
  Expr index = translate(op.getIndices().back());
  if (!index)
    return nullptr;
  return pool.read(tensor, SmallVector<Value>(op.getIndices().drop_back()), index);
}

} // namespace attn
