//===- Narrow.cpp - numbers of any size beside positions --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/Narrow.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::bound;

namespace attn {

using Kind = ExprNode::Kind;
using Term = std::pair<Expr, int64_t>;

/// Elements that are read at the running position are found by searches instead.
static bool isNumber(Expr expr) {
  return expr->kind == Kind::Scalar || (expr->kind == Kind::Read && !expr->usesRunning);
}

/// min(max(expr, least), greatest) == min(max(result, least), greatest) for all positions, and the
/// result is not wide; null where no such one is known.
static Expr narrowTo(ExprPool &pool, Expr expr, int64_t least, int64_t greatest);

/// The sum of numbers of any size, clamped as a whole: clamped by themselves, two large ones would
/// no longer have their difference.
static Expr clampNumbers(ExprPool &pool, llvm::ArrayRef<Term> numbers, int64_t least,
                         int64_t greatest) {
  // A mask, its negation and its neighbors clamp the same sum to the same ends, so that they
  // cancel.
  int64_t sign = numbers.front().second < 0 ? -1 : 1;
  int64_t limit = llvm::alignTo(std::max(std::abs(least), std::abs(greatest)), limitStep);
  if (limit > narrowLimit)
    return nullptr;
  Expr sum = pool.constant(0);
  for (auto [number, coefficient] : numbers)
    sum = pool.scaleAdd(sign * coefficient, number, sum);
  return pool.scale(pool.clamp(sum, -limit, limit), sign);
}

/// Past `least - rest` and `greatest - rest`, for any rest, the sum is past its own limits.
static Expr narrowSum(ExprPool &pool, Expr sum, int64_t least, int64_t greatest) {
  llvm::SmallVector<Term> wide;
  Expr rest = pool.constant(sum->constant);
  for (auto [operand, coefficient] : llvm::zip_equal(sum->operands, sum->coefficients)) {
    if (operand->isWide)
      wide.push_back({operand, coefficient});
    else
      rest = pool.scaleAdd(coefficient, operand, rest);
  }
  int64_t low = least - rest->greatest, high = greatest - rest->least;
  if (llvm::all_of(wide, [](Term term) { return isNumber(term.first); })) {
    Expr clamped = clampNumbers(pool, wide, low, high);
    return clamped ? pool.add(clamped, rest) : nullptr;
  }
  if (wide.size() != 1)
    return nullptr;
  auto [term, coefficient] = wide.front();
  if (coefficient < 0)
    std::tie(low, high) = std::pair(-high, -low);
  int64_t factor = std::abs(coefficient);
  Expr narrow = narrowTo(pool, term, llvm::divideFloorSigned(low, factor),
                         llvm::divideCeilSigned(high, factor));
  return narrow ? pool.scaleAdd(coefficient, narrow, rest) : nullptr;
}

static Expr narrowTo(ExprPool &pool, Expr expr, int64_t least, int64_t greatest) {
  if (!expr->isWide)
    return expr;
  if (isNumber(expr))
    return clampNumbers(pool, Term(expr, 1), least, greatest);
  switch (expr->kind) {
  case Kind::Sum:
    return narrowSum(pool, expr, least, greatest);
  case Kind::FloorDiv: {
    if (!expr->operands[1]->isConstant())
      return nullptr;
    int64_t divisor = expr->operands[1]->constant, low, high;
    if (llvm::MulOverflow(least, divisor, low) || llvm::MulOverflow(greatest, divisor, high))
      return nullptr;
    Expr dividend = narrowTo(pool, expr->operands[0], low, high);
    return dividend ? pool.floorDiv(dividend, expr->operands[1]) : nullptr;
  }
  case Kind::Min:
  case Kind::Max: {
    llvm::SmallVector<Expr, 4> operands;
    for (Expr operand : expr->operands) {
      operands.push_back(narrowTo(pool, operand, least, greatest));
      if (!operands.back())
        return nullptr;
    }
    return expr->kind == Kind::Min ? pool.min(operands) : pool.max(operands);
  }
  default:
    return nullptr;
  }
}

/// Whether the sum has an element at the running position, once, and else only numbers and narrow
/// terms.
static bool isSearch(Expr literal) {
  if (literal->kind != Kind::Sum)
    return literal->kind == Kind::Read && literal->usesRunning;
  unsigned elements = 0;
  for (auto [operand, coefficient] : llvm::zip_equal(literal->operands, literal->coefficients)) {
    if (operand->kind == Kind::Read && operand->usesRunning && std::abs(coefficient) == 1)
      ++elements;
    else if (operand->usesRunning || (operand->isWide && !isNumber(operand)))
      return false;
  }
  return elements == 1;
}

/// `literal` without one constant that bounds a term and never decides whether it is negative; null
/// where there is none.
static Expr dropBound(ExprPool &pool, Expr literal, Expr term, int64_t coefficient) {
  if (term->kind != Kind::Min && term->kind != Kind::Max)
    return nullptr;
  Expr rest = pool.scaleAdd(-coefficient, term, literal);
  // The literal is as large as the least of its values for each operand of the term, or as the
  // greatest.
  bool isLeast = (term->kind == Kind::Min) == (coefficient > 0);
  auto neverDecides = [&](Expr operand) {
    Expr value = pool.scaleAdd(coefficient, operand, rest);
    return operand->isConstant() && (isLeast ? value->least >= 0 : value->greatest < 0);
  };
  llvm::SmallVector<Expr, 4> kept(term->operands);
  const auto *bound = llvm::find_if(kept, neverDecides);
  if (bound == kept.end())
    return nullptr;
  kept.erase(bound);
  Expr left = term->kind == Kind::Min ? pool.min(kept) : pool.max(kept);
  return pool.scaleAdd(coefficient, left, rest);
}

/// Without the bounds of what was read, which are beyond all positions so that sums fit
/// (attn-widen-indices): an element at the running position is found by a search only as it is.
static Expr dropBounds(ExprPool &pool, Expr literal) {
  if (literal->kind != Kind::Sum) {
    Expr next = dropBound(pool, literal, literal, 1);
    return next ? dropBounds(pool, next) : literal;
  }
  for (auto [term, coefficient] : llvm::zip_equal(literal->operands, literal->coefficients))
    if (Expr next = dropBound(pool, literal, term, coefficient))
      return dropBounds(pool, next);
  return literal;
}

/// Whether a quotient of an expression can be written: it is made of numbers and positions, and no
/// target has to divide more than 64 bits. Powers of two are shifts, of any bits.
static bool isDivisible(Expr expr, int64_t divisor) {
  auto isEasy = [&](Expr e) { return isDivisible(e, divisor); };
  if (expr->kind == Kind::Sum)
    return llvm::all_of(expr->operands, isEasy);
  if (expr->kind == Kind::FloorDiv && expr->operands[1]->isConstant())
    return isEasy(expr->operands[0]) && isDivisible(expr->operands[0], expr->operands[1]->constant);
  if (!isNumber(expr))
    return expr->kind == Kind::Symbol || expr->isConstant();
  Type type = expr->value.getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool isShort = bitsOf(tensor ? tensor.getElementType() : type) <= 32;
  return isShort || !expr->isWide || llvm::isPowerOf2_64(divisor);
}

/// `c * n + x >= 0` is `n + floor(x / c) >= 0`, and `x - c * n >= 0` is `floor(x / c) - n >= 0`,
/// for the running position n. No position is past the limits of the quotient, though x may have to
/// be larger than what is narrow to reach them.
static Expr narrowQuotient(ExprPool &pool, Expr literal) {
  if (literal->kind != Kind::Sum)
    return nullptr;
  Expr running = pool.symbol(Symbol::Running), rest = pool.constant(literal->constant);
  int64_t factor = 0;
  for (auto [operand, coefficient] : llvm::zip_equal(literal->operands, literal->coefficients)) {
    if (operand == running)
      factor = coefficient;
    else if (operand->usesRunning)
      return nullptr;
    else
      rest = pool.scaleAdd(coefficient, operand, rest);
  }
  int64_t divisor = std::abs(factor);
  if (divisor == 0 || !isDivisible(rest, divisor))
    return nullptr;
  constexpr int64_t kLimit = positionLimit + limitStep;
  Expr quotient = pool.clamp(pool.floorDiv(rest, pool.constant(divisor)), -kLimit, kLimit);
  return pool.scaleAdd(factor < 0 ? -1 : 1, running, quotient);
}

Expr narrowLiteral(ExprPool &pool, Expr literal) {
  if (!literal->isWide)
    return literal;
  literal = dropBounds(pool, literal);
  if (isSearch(literal))
    return literal;
  // Its sign is all that counts.
  if (Expr narrow = narrowTo(pool, literal, -1, 0))
    return narrow;
  return narrowQuotient(pool, literal);
}

} // namespace attn
