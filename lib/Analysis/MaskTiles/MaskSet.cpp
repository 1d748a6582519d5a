//===- MaskSet.cpp - the intervals a mask keeps and drops -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/MaskSet.h"
#include "lib/Analysis/MaskTiles/MaskReader.h"

using namespace mlir;
using namespace attn::bound;

namespace attn {

using Kind = ExprNode::Kind;

namespace {
struct PositionBound {
  bool isLow;
  Expr bound;
};

class Projection {
public:
  Projection(ExprPool &pool) : pool(pool) {}

  /// No interval when the conjunction is false for all of the block.
  std::optional<Interval> project(const Conjunction &conjunction);

private:
  /// Solves `literal >= 0` for one position.
  std::optional<PositionBound> isolate(Expr literal, Symbol position);
  /// A condition on the fixed position alone; `isImplied` says that the bounds state it as well.
  void restrictFixed(Expr literal, bool isImplied);
  /// The least or greatest value over the block; exact when monotone, null when unknown.
  Expr extreme(Expr expr, bool isLeast, bool isIndex = false);

  ExprPool &pool;
  SmallVector<Expr, 4> lows, highs, fixedLows, fixedHighs, guards, weakConditions;
  Expr firstFixed = nullptr, lastFixed = nullptr;
};
} // namespace

/// The element at a running position that an index is, up to a number, or null.
static Expr findRead(Expr index) {
  auto isRead = [](Expr e) { return e->kind == Kind::Read && e->usesRunning && !e->usesFixed; };
  if (isRead(index))
    return index;
  if (index->kind != Kind::Sum)
    return nullptr;
  for (auto [operand, coefficient] : llvm::zip_equal(index->operands, index->coefficients))
    if (coefficient == 1 && isRead(operand))
      return operand;
  return nullptr;
}

namespace {
/// An index that grows with the running position: that position, or an element at such an index,
/// and a number.
struct RunningIndex {
  Expr offset, through;
};
} // namespace

static std::optional<RunningIndex> splitIndex(ExprPool &pool, Expr index) {
  Expr through = findRead(index);
  Expr offset = pool.sub(index, through ? through : pool.symbol(Symbol::Running));
  if (offset->usesRunning || offset->usesFixed ||
      (through && !splitIndex(pool, through->operands[0])))
    return std::nullopt;
  return RunningIndex{offset, through};
}

std::optional<PositionBound> Projection::isolate(Expr literal, Symbol position) {
  Expr term = nullptr, rest = pool.constant(0);
  int64_t factor = 0;
  if (literal->kind != Kind::Sum) {
    term = literal;
    factor = 1;
  } else {
    rest = pool.constant(literal->constant);
    for (auto [operand, coefficient] : llvm::zip_equal(literal->operands, literal->coefficients)) {
      if (!operand->uses(position)) {
        rest = pool.scaleAdd(coefficient, operand, rest);
        continue;
      }
      if (term)
        return std::nullopt;
      term = operand;
      factor = coefficient;
    }
  }
  if (!term)
    return std::nullopt;
  // factor * term + rest >= 0.
  bool isLow = factor > 0;
  Expr limit = isLow ? pool.scale(pool.floorDiv(rest, pool.constant(factor)), -1)
                     : pool.floorDiv(rest, pool.constant(-factor));
  if (term->kind == Kind::Symbol)
    return PositionBound{isLow, limit};
  if (term->kind == Kind::FloorDiv && !term->operands[1]->uses(position)) {
    Expr dividend = term->operands[0], divisor = term->operands[1];
    // Multiples of a divisor that is known at run time only may be too large.
    int64_t multiples = limit->isConstant() || limit->kind == Kind::Sum ? limit->constant : 0;
    if (!divisor->isConstant() && std::abs(multiples) > 2)
      return std::nullopt;
    Expr edge = pool.product(divisor, limit);
    if (isLow)
      return isolate(pool.sub(dividend, edge), position);
    return isolate(pool.sub(pool.add(pool.add(edge, divisor), -1), dividend), position);
  }
  if (term->kind == Kind::Read && position == Symbol::Running) {
    auto index = splitIndex(pool, term->operands[0]);
    if (!index)
      return std::nullopt;
    auto search = [&](Expr least) {
      return pool.search(term->value, term->leading, index->offset, least, index->through);
    };
    if (isLow)
      return PositionBound{true, search(limit)};
    return PositionBound{false, pool.add(search(pool.add(limit, 1)), -1)};
  }
  return std::nullopt;
}

void Projection::restrictFixed(Expr literal, bool isImplied) {
  if (!literal->usesFixed) {
    guards.push_back(pool.nonNegative(literal));
    return;
  }
  if (auto bound = isolate(literal, Symbol::Fixed))
    (bound->isLow ? fixedLows : fixedHighs).push_back(bound->bound);
  else if (!isImplied)
    weakConditions.push_back(literal);
}

Expr Projection::extreme(Expr expr, bool isLeast, bool isIndex) {
  if (!expr->usesFixed)
    return expr;
  auto operand = [&](unsigned i, bool least) { return extreme(expr->operands[i], least, isIndex); };
  switch (expr->kind) {
  case Kind::Symbol: {
    // Positions outside of the block may be out of a tensor's bounds.
    Expr begin = pool.symbol(Symbol::FixedBegin);
    Expr last = pool.add(pool.symbol(Symbol::FixedEnd), -1);
    if (isIndex && isLeast && firstFixed != begin)
      return pool.min({firstFixed, last});
    if (isIndex && !isLeast && lastFixed != last)
      return pool.max({lastFixed, begin});
    return isLeast ? firstFixed : lastFixed;
  }
  case Kind::Sum: {
    Expr total = pool.constant(expr->constant);
    for (unsigned i = 0; i < expr->operands.size(); ++i) {
      Expr term = operand(i, isLeast == (expr->coefficients[i] > 0));
      if (!term)
        return nullptr;
      total = pool.scaleAdd(expr->coefficients[i], term, total);
    }
    return total;
  }
  case Kind::FloorDiv: {
    Expr dividend = expr->operands[1]->usesFixed ? nullptr : operand(0, isLeast);
    return dividend ? pool.floorDiv(dividend, expr->operands[1]) : nullptr;
  }
  case Kind::Product: {
    Expr factor = expr->operands[0]->usesFixed ? nullptr : operand(1, isLeast);
    return factor ? pool.product(expr->operands[0], factor) : nullptr;
  }
  case Kind::Min:
  case Kind::Max: {
    SmallVector<Expr, 4> operands;
    for (unsigned i = 0; i < expr->operands.size(); ++i) {
      operands.push_back(operand(i, isLeast));
      if (!operands.back())
        return nullptr;
    }
    return expr->kind == Kind::Min ? pool.min(operands) : pool.max(operands);
  }
  case Kind::Clamp: {
    Expr value = operand(0, isLeast);
    return value ? pool.clamp(value, expr->coefficients[0], expr->coefficients[1]) : nullptr;
  }
  case Kind::Read: {
    Expr index = extreme(expr->operands[0], isLeast, /*isIndex=*/true);
    return index ? pool.read(expr->value, expr->leading, index) : nullptr;
  }
  case Kind::Search: {
    Expr least = operand(1, isLeast);
    return least ? pool.search(expr->value, expr->leading, expr->operands[0], least,
                               expr->getThrough())
                 : nullptr;
  }
  default:
    return nullptr;
  }
}

/// Whether the condition compares n or n - m with a number that is constant in the block, where n
/// runs. For each m, a conjunction of such conditions keeps n from max(m + a, c) to min(m + b, d),
/// where a <= b if any m keeps an n. Then all n from max(m0 + a, c) to min(m1 - 1 + b, d) are kept
/// by some m of [m0, m1).
static bool isDiagonal(Expr literal) {
  if (literal->kind != Kind::Sum)
    return false;
  int64_t running = 0, fixed = 0;
  for (auto [operand, coefficient] : llvm::zip_equal(literal->operands, literal->coefficients)) {
    if (!operand->usesRunning && !operand->usesFixed)
      continue;
    if (operand->kind != Kind::Symbol)
      return false;
    (operand->usesRunning ? running : fixed) = coefficient;
  }
  return std::abs(running) == 1 && (fixed == 0 || fixed == -running);
}

std::optional<Interval> Projection::project(const Conjunction &conjunction) {
  for (Expr literal : conjunction) {
    if (isBoolean(literal)) {
      guards.push_back(literal);
    } else if (!literal->usesRunning) {
      restrictFixed(literal, /*isImplied=*/false);
    } else if (auto bound = isolate(literal, Symbol::Running)) {
      (bound->isLow ? lows : highs).push_back(bound->bound);
    }
  }
  // Fourier-Motzkin: a row has a key (or a key a row) only if each low end is at most each high
  // end. Where only one of the two depends on it, the final comparison of the interval's ends says
  // the same.
  for (Expr low : lows)
    for (Expr high : highs)
      if (low->usesFixed && high->usesFixed)
        restrictFixed(pool.sub(high, low), /*isImplied=*/true);

  fixedLows.push_back(pool.symbol(Symbol::FixedBegin));
  fixedHighs.push_back(pool.add(pool.symbol(Symbol::FixedEnd), -1));
  firstFixed = pool.max(fixedLows);
  lastFixed = pool.min(fixedHighs);
  if (fixedLows.size() > 1 || fixedHighs.size() > 1)
    guards.push_back(pool.lessEqual(firstFixed, lastFixed));
  for (Expr condition : weakConditions)
    if (Expr best = extreme(condition, /*isLeast=*/false))
      guards.push_back(pool.nonNegative(best));

  Interval interval;
  SmallVector<Expr, 4> begins, ends;
  for (Expr low : lows)
    if (Expr begin = extreme(low, /*isLeast=*/true))
      begins.push_back(begin);
  for (Expr high : highs)
    if (Expr last = extreme(high, /*isLeast=*/false))
      ends.push_back(pool.add(last, 1));
  if (!begins.empty())
    interval.begin = pool.max(begins);
  if (!ends.empty())
    interval.end = pool.min(ends);
  Expr guard = pool.conjunction(guards);
  if (guard->isFalse())
    return std::nullopt;
  if (!guard->isTrue())
    interval.guard = guard;
  interval.isExact = llvm::all_of(conjunction, isDiagonal);
  return interval;
}

SmallVector<Interval, 2> coverRunning(ExprPool &pool, Region &mask, MaskAxis running, bool polarity,
                                      FactOf factOf) {
  if (mask.empty())
    return polarity ? SmallVector<Interval, 2>{{}} : SmallVector<Interval, 2>{};
  Operation *terminator =
      mask.front().mightHaveTerminator() ? mask.front().getTerminator() : nullptr;
  if (!mask.hasOneBlock() || mask.getNumArguments() != 4 || !terminator ||
      terminator->getNumOperands() != 1)
    return {{}};
  MaskReader reader(pool, mask, running, factOf);
  SmallVector<Interval, 2> cover;
  for (const Conjunction &conjunction : reader.read(terminator->getOperand(0), polarity))
    if (auto interval = Projection(pool).project(conjunction))
      cover.push_back(*interval);
  for (Interval &interval : cover)
    interval.isExact &= reader.isExact();
  return cover;
}

} // namespace attn
