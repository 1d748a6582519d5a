//===- Diagonals.cpp - sums along diagonals, by exchanges within a warp -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A warp holds 16 rows of an accumulator. Lane 4 g + t has rows g and g + 8, and of each of them
// columns 8 j + 2 t + i, with i 0 or 1. In steps of s = 8, 4, 2 and 1 each element takes the
// element s rows below and s columns to the right. A taken element becomes a zero, as does every
// element that has another s rows above and s columns to the left. So sums move to where their
// diagonals begin.
//
//   s = 8   from the lower of the thread's own rows, at j + 1
//   s < 8   from lane g + s modulo 8, of whose rows the lower one where that wraps;
//           t + (i + s) / 2 modulo 4, and j + 1 where that wraps; (i + s) modulo 2
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <map>

using namespace mlir;
using namespace attn::tile;

namespace {
/// A thread's elements of 16 rows, by half and 2 j + i.
class DiagonalSums {
public:
  DiagonalSums(OpBuilder &builder, Location loc, Value lane, SmallVector<Value> upper,
               SmallVector<Value> lower)
      : b(builder), loc(loc), lane(lane),
        zero(arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0))), upper(std::move(upper)),
        lower(std::move(lower)) {}

  void sum() {
    addLowerHalf();
    for (int64_t distance : {4, 2, 1})
      addBelow(distance);
  }
  ArrayRef<Value> getUpper() const { return upper; }
  ArrayRef<Value> getLower() const { return lower; }

private:
  using Half = SmallVector<Value>;

  void addLowerHalf();
  void addBelow(int64_t distance);
  /// The lane's element for `slot` of the lane that is `distance` rows above.
  Value give(const Half &half, int64_t slot, int64_t distance);
  /// `value` from the lane that is `distance` rows below.
  Value take(Value value, int64_t slot, int64_t distance);

  /// (lane & mask) < count.
  Value isBelow(int64_t mask, int64_t count) {
    Value part = LLVM::AndOp::create(b, loc, lane, i32(b, loc, mask));
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, part, i32(b, loc, count));
  }
  Value isOfFirstQuads(int64_t count) { return isBelow(kLanes - 4, 4 * count); }
  Value isOfFirstLanes(int64_t count) { return isBelow(3, count); }
  Value select(Value condition, Value yes, Value no) {
    return LLVM::SelectOp::create(b, loc, condition, yes, no);
  }
  Value add(Value a, Value c) { return arith::AddFOp::create(b, loc, a, c); }

  OpBuilder &b;
  Location loc;
  Value lane, zero;
  Half upper, lower;
};
} // namespace

void DiagonalSums::addLowerHalf() {
  for (size_t slot = 2; slot < lower.size(); ++slot)
    upper[slot - 2] = add(upper[slot - 2], std::exchange(lower[slot], zero));
}

Value DiagonalSums::give(const Half &half, int64_t slot, int64_t distance) {
  auto get = [&](int64_t at) { return at < int64_t(half.size()) ? half[at] : zero; };
  int64_t lanes = (slot % 2 + distance) / 2, other = slot - slot % 2 + (slot + distance) % 2;
  return lanes == 0 ? get(other) : select(isOfFirstLanes(lanes), get(other + 2), get(other));
}

Value DiagonalSums::take(Value value, int64_t slot, int64_t distance) {
  auto shift = [&](int64_t mask, int64_t by) -> Value {
    Value moved = LLVM::AddOp::create(b, loc, lane, i32(b, loc, by));
    return LLVM::AndOp::create(b, loc, moved, i32(b, loc, mask));
  };
  Value from = LLVM::OrOp::create(b, loc, shift(kLanes - 4, 4 * distance),
                                  shift(3, (slot % 2 + distance) / 2));
  return NVVM::ShflOp::create(b, loc, value.getType(), i32(b, loc, -1), value, from,
                              i32(b, loc, kLanes - 1), NVVM::ShflKind::idx, UnitAttr());
}

void DiagonalSums::addBelow(int64_t distance) {
  Value isFirst = isOfFirstQuads(distance);
  Half sums(upper.size()), lowerSums(lower.size(), zero);
  for (int64_t slot = 0; slot < int64_t(upper.size()); ++slot) {
    bool isLeft = slot < 2;
    // Of the lower rows the first columns alone are left, which the first columns ask for.
    Value given = give(upper, slot, distance), lowerGiven;
    if (isLeft) {
      lowerGiven = give(lower, slot, distance);
      given = select(isFirst, lowerGiven, given);
    }
    Value sum = add(upper[slot], take(given, slot, distance)), rest = zero;
    // Those of 2 t + i < distance.
    int64_t lanes = (distance + 1 - slot % 2) / 2;
    if (isLeft && lanes > 0) {
      Value isFirstColumn = isOfFirstLanes(lanes);
      rest = select(isFirstColumn, sum, zero);
      Value below = take(select(isFirst, zero, lowerGiven), slot, distance);
      lowerSums[slot] = select(isFirstColumn, add(lower[slot], below), zero);
    }
    sums[slot] = select(isFirst, sum, rest);
  }
  upper = std::move(sums);
  lower = std::move(lowerSums);
}

namespace {
struct SumDiagonalsPattern : TilePattern<SumDiagonalsOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(SumDiagonalsOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!hasLayout(type))
      return rewriter.notifyMatchFailure(op, "expected a layout");
    Location loc = op.getLoc();
    Layout layout = getLayout(type);
    if (cast<AccAttr>(type.getEncoding()).getUnit().form == attn::Product::Form::Tensor)
      return op.emitOpError("expected rows that lanes of a quad share, got ") << type;
    // Registers of a thread by their row among those of lane 0, then by column.
    std::map<int64_t, SmallVector<int64_t>> rows;
    for (int64_t reg = 0; reg < layout.getNumRegisters(); ++reg)
      rows[layout.getPosition({0, 0, reg}).row].push_back(reg);
    Value lane = context.getLane(rewriter, op);
    SmallVector<Value> results(layout.getNumRegisters());
    for (auto &[row, upper] : rows) {
      if (row % 16 != 0)
        continue;
      ArrayRef<int64_t> lower = rows.at(row + 8);
      auto take = [&](ArrayRef<int64_t> registers) {
        return llvm::map_to_vector(registers,
                                   [&](int64_t reg) { return adaptor.getSource()[reg]; });
      };
      DiagonalSums sums(rewriter, loc, lane, take(upper), take(lower));
      sums.sum();
      for (size_t slot = 0; slot < upper.size(); ++slot) {
        results[upper[slot]] = sums.getUpper()[slot];
        results[lower[slot]] = sums.getLower()[slot];
      }
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};
} // namespace

void attn::tile::populateDiagonalPatterns(RewritePatternSet &patterns,
                                          const PatternContext &context) {
  patterns.add<SumDiagonalsPattern>(context, patterns.getContext());
}
