//===- KeptColumns.cpp - which columns of a tile are kept --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/KeptColumns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

namespace {
/// columns `predicate` bound.
struct ColumnBound {
  arith::CmpIPredicate predicate;
  Value bound;
};
} // namespace

static std::optional<ColumnBound> matchColumnBound(Value keep, Value columns) {
  auto compare = keep.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  if (compare.getLhs() == columns)
    return ColumnBound{compare.getPredicate(), compare.getRhs()};
  if (compare.getRhs() != columns)
    return std::nullopt;
  using enum arith::CmpIPredicate;
  switch (compare.getPredicate()) {
  case sle:
    return ColumnBound{sge, compare.getLhs()};
  case slt:
    return ColumnBound{sgt, compare.getLhs()};
  case sge:
    return ColumnBound{sle, compare.getLhs()};
  case sgt:
    return ColumnBound{slt, compare.getLhs()};
  default:
    return std::nullopt;
  }
}

/// `keep` with what `narrow` makes of one of the comparisons that it conjoins; null where it makes
/// nothing of any.
static Value narrowOne(TileBuilder &b, Value keep, llvm::function_ref<Value(Value)> narrow) {
  auto both = keep.getDefiningOp<arith::AndIOp>();
  if (!both)
    return narrow(keep);
  if (Value lhs = narrowOne(b, both.getLhs(), narrow))
    return arith::AndIOp::create(b, lhs, both.getRhs());
  if (Value rhs = narrowOne(b, both.getRhs(), narrow))
    return arith::AndIOp::create(b, both.getLhs(), rhs);
  return {};
}

Value attn::narrowFrom(TileBuilder &b, Value keep, Value columns, Value distances, Value begin) {
  using enum arith::CmpIPredicate;
  auto type = cast<RankedTensorType>(columns.getType());
  auto broadcast = [&](Value scalar) { return b.splat(scalar, type.getShape()); };
  Value before = b.createOrFold<arith::SubIOp>(begin, arith::ConstantIndexOp::create(b, 1));
  // With a least column, it is the greater of the two.
  Value narrowed = narrowOne(b, keep, [&](Value compare) -> Value {
    std::optional<ColumnBound> least = matchColumnBound(compare, columns);
    if (!least || (least->predicate != sge && least->predicate != sgt))
      return {};
    Value own = broadcast(least->predicate == sge ? begin : before);
    return arith::CmpIOp::create(b, least->predicate, columns,
                                 arith::MaxSIOp::create(b, least->bound, own));
  });
  if (narrowed)
    return narrowed;
  // With a greatest one, it says how many are kept from `begin` on: without a sign, distances of
  // columns before are greater.
  narrowed = narrowOne(b, keep, [&](Value compare) -> Value {
    std::optional<ColumnBound> greatest = matchColumnBound(compare, columns);
    // If the columns have other uses too, distances would take as many registers again.
    if (!greatest || (greatest->predicate != sle && greatest->predicate != slt) ||
        !columns.hasOneUse())
      return {};
    Value own = broadcast(greatest->predicate == slt ? begin : before);
    Value count = arith::SubIOp::create(b, greatest->bound, own);
    Value none = broadcast(arith::ConstantIndexOp::create(b, 0));
    return arith::CmpIOp::create(b, ult, distances, arith::MaxSIOp::create(b, count, none));
  });
  if (narrowed)
    return narrowed;
  return arith::AndIOp::create(b, keep, arith::CmpIOp::create(b, sge, columns, broadcast(begin)));
}
