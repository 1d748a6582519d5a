//===- ScoreExtremes.cpp - scores at the ends of f32 -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <limits>

using namespace mlir;

namespace {
/// The size that a value of a score region may have; sums and choices have the size of their
/// greatest operand.
enum class Size {
  Moderate,
  /// An element of a tensor, or a scalar from outside: moderate as a factor, anything as a term.
  Read,
  Extreme,
};
} // namespace

namespace {
/// The extreme that is looked for; reads are looked for too.
enum class Extreme { Infinite, Finite };
} // namespace

static Size sizeOfConstant(const APFloat &constant, Extreme extreme) {
  if (!constant.isFinite())
    return constant.isInfinity() && extreme == Extreme::Infinite ? Size::Extreme : Size::Moderate;
  bool isExact;
  APFloat magnitude = abs(constant);
  magnitude.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isExact);
  return magnitude.convertToDouble() > attn::kLargestScore ? Size::Extreme : Size::Moderate;
}

/// The value that is compared with a constant and, where it is equal, replaced by it (as
/// emitBoundedScore does with -inf); null for other ops. The constant says nothing new.
static Value getReplacedByEqual(Operation *op) {
  auto select = dyn_cast<arith::SelectOp>(op);
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::OEQ)
    return {};
  APFloat to(0.0), with(0.0);
  bool isSame = matchPattern(select.getTrueValue(), m_ConstantFloat(&to)) &&
                matchPattern(compare.getRhs(), m_ConstantFloat(&with)) && to.bitwiseIsEqual(with);
  return isSame ? compare.getLhs() : Value();
}

static Size sizeOf(Operation *op, Extreme extreme, function_ref<Size(Value)> of) {
  APFloat constant(0.0);
  if (matchPattern(op, m_ConstantFloat(&constant)))
    return sizeOfConstant(constant, extreme);
  auto greatest = [&](ValueRange values) {
    Size size = Size::Moderate;
    for (Value value : values)
      size = std::max(size, of(value));
    return size;
  };
  if (Value replaced = getReplacedByEqual(op))
    return greatest({replaced, cast<arith::SelectOp>(op).getFalseValue()});
  // A product is extreme with a factor that is known to be.
  auto product = [&](ValueRange factors) {
    Size size = greatest(factors);
    return size == Size::Read ? Size::Moderate : size;
  };
  if (isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
          arith::MaxNumFOp, arith::MinNumFOp, arith::SelectOp, arith::ExtFOp, arith::TruncFOp,
          math::AbsFOp, math::CopySignOp>(op))
    return greatest(op->getOperands());
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return product(op->getOperands());
  if (isa<math::FmaOp>(op))
    return std::max(product(op->getOperands().take_front(2)), of(op->getOperand(2)));
  // A logarithm of 0.
  if (isa<math::LogOp, math::Log1pOp, math::Log2Op, math::Log10Op>(op))
    return extreme == Extreme::Infinite ? Size::Extreme : Size::Moderate;
  if (isa<arith::BitcastOp>(op))
    return Size::Extreme;
  bool computes = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  return computes ? Size::Moderate : Size::Read;
}

/// The size that the region's result may have, given a moderate score.
static Size sizeOfResult(Extreme extreme, Region &score) {
  if (score.empty())
    return Size::Moderate;
  DenseMap<Value, Size> sizes;
  auto of = [&](Value value) {
    if (!isa<FloatType>(value.getType()))
      return Size::Moderate;
    if (auto known = sizes.find(value); known != sizes.end())
      return known->second;
    if (Operation *op = value.getDefiningOp(); op && op->hasTrait<OpTrait::ConstantLike>())
      return sizeOf(op, extreme, [](Value) { return Size::Moderate; });
    return value.getParentRegion() == &score ? Size::Moderate : Size::Read;
  };
  for (Operation &op : score.front().without_terminator())
    for (Value result : op.getResults())
      sizes[result] = sizeOf(&op, extreme, of);
  return of(score.front().getTerminator()->getOperand(0));
}

bool attn::mayDropKeys(Region &score) {
  return sizeOfResult(Extreme::Infinite, score) != Size::Moderate;
}

bool attn::dropsKeysItself(Region &score) {
  return sizeOfResult(Extreme::Infinite, score) == Size::Extreme;
}

bool attn::mayExceedLargestScore(Region &score) {
  return sizeOfResult(Extreme::Finite, score) != Size::Moderate;
}

Value attn::emitBoundedScore(OpBuilder &builder, Location loc, Value score) {
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(score.getType(), value));
  };
  Value lowest = constant(-std::numeric_limits<double>::infinity());
  Value bounded = arith::MinimumFOp::create(builder, loc, score, constant(kLargestScore));
  bounded = arith::MaximumFOp::create(builder, loc, bounded, constant(-kLargestScore));
  Value isDropped = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, score, lowest);
  return arith::SelectOp::create(builder, loc, isDropped, lowest, bounded);
}

bool attn::isBoundedScore(Value score) {
  auto select = score.getDefiningOp<arith::SelectOp>();
  auto isDropped = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  auto lower =
      select ? select.getFalseValue().getDefiningOp<arith::MaximumFOp>() : arith::MaximumFOp();
  auto upper = lower ? lower.getLhs().getDefiningOp<arith::MinimumFOp>() : arith::MinimumFOp();
  return isDropped && upper && isDropped.getPredicate() == arith::CmpFPredicate::OEQ &&
         isDropped.getLhs() == upper.getLhs();
}
