//===- Merge.cpp - partial results on tiles -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   max    = max_s lse_s                                          one loop over the parts
//   total  = sum_s 2^((lse_s - max) log2 e)                       and another
//   acc    = sum_s 2^((lse_s - max) log2 e) * partial_s
//   output = acc / total, lse = max + ln total                    a row that no part has: 0, -inf
//
// The maximum comes first, so that nothing is scaled again; reading an lse twice costs less. Where
// there are many columns, sums and what is added to them do not fit the registers together: the
// second loop then runs for one piece of the columns at a time.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;

constexpr int64_t kPieceColumns = 128;

/// What a merge reads fits the tiles of this room.
static LogicalResult checkMerge(MergeOp op, bool areSlices) {
  ShapedType type = op.getPartial().getType();
  if (!areSlices)
    return op.emitOpError("expected partial results to be slices of the kernel's arguments");
  if (type.isDynamicDim(type.getRank() - 1))
    return op.emitOpError("expected a static Dv, got ") << type;
  if (!type.getElementType().isF32())
    return op.emitOpError("expected partial results of f32, got ") << type;
  return success();
}

namespace {
/// The rows of a block, all parts of them.
class MergeRecipe {
public:
  MergeRecipe(BlockConverter &block, MergeOp op, const ArgumentSlice &partial,
              const ArgumentSlice &partialLse)
      : block(block), b(block.builder), op(op), partial(partial), partialLse(partialLse),
        row(RankedTensorType::get({block.rows}, b.getF32Type())), rows(row.getShape()),
        zero(arith::ConstantIndexOp::create(b, 0)), one(arith::ConstantIndexOp::create(b, 1)) {}

  void emit();

private:
  Value load(const ArgumentSlice &slice, Value part, int64_t column, RankedTensorType type);
  Value emitMaximum();
  Value emitPiece(int64_t column, int64_t columns);

  BlockConverter &block;
  TileBuilder &b;
  MergeOp op;
  const ArgumentSlice &partial, &partialLse;
  RankedTensorType row;
  ArrayRef<int64_t> rows;
  Value zero, one;
  /// Of each row: whether no part has anything; the greatest lse, or 0 then; the sum of the parts'
  /// weights relative to it.
  Value isEmpty, offset, total;
};
} // namespace

Value MergeRecipe::load(const ArgumentSlice &slice, Value part, int64_t column,
                        RankedTensorType type) {
  SmallVector<Value> position = slice.position;
  position.front() = b.createOrFold<arith::AddIOp>(position.front(), part);
  Value first = arith::ConstantIndexOp::create(b, column);
  position.back() = b.createOrFold<arith::AddIOp>(position.back(), first);
  return tile::LoadOp::create(b, type, slice.memref, position);
}

Value MergeRecipe::emitMaximum() {
  auto maxima = scf::ForOp::create(b, zero, partial.sizes.front(), one,
                                   ValueRange{b.constant(kLowest, rows)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(maxima.getBody());
  Value lse = load(partialLse, maxima.getInductionVar(), 0, row);
  Value next = arith::MaximumFOp::create(b, maxima.getRegionIterArg(0), lse);
  scf::YieldOp::create(b, next);
  return maxima.getResult(0);
}

/// Some columns of the output.
Value MergeRecipe::emitPiece(int64_t column, int64_t columns) {
  RankedTensorType type = RankedTensorType::get({block.rows, columns}, b.getF32Type());
  Value inits[] = {b.constant(0.0, rows), b.constant(0.0, type.getShape())};
  auto sums = scf::ForOp::create(b, zero, partial.sizes.front(), one, inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(sums.getBody());
    Value part = sums.getInductionVar(), acc = sums.getRegionIterArg(1);
    Value lse = load(partialLse, part, 0, row);
    Value exponent = arith::MulFOp::create(b, arith::SubFOp::create(b, lse, offset),
                                           b.constant(1.0 / M_LN2, rows));
    // A part that is infinite, of a sink that is, is the whole, though inf - inf is none.
    Value isMax = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse, offset);
    exponent = arith::SelectOp::create(b, isMax, b.constant(0.0, rows), exponent);
    Value weight = math::Exp2Op::create(b, exponent);
    Value values = load(partial, part, column, type);
    Value added = math::FmaOp::create(b, values, b.rowsToTile(weight, columns), acc);
    // What a part without keys left in memory is not a number to count on.
    Value isNothing = b.rowsToTile(b.isEqual(lse, kLowest), columns);
    Value next[] = {arith::AddFOp::create(b, sums.getRegionIterArg(0), weight),
                    arith::SelectOp::create(b, isNothing, acc, added)};
    scf::YieldOp::create(b, next);
  }
  total = sums.getResult(0);
  Value quotient = arith::DivFOp::create(b, b.constant(1.0, rows), total);
  Value inverse = arith::SelectOp::create(b, isEmpty, b.constant(0.0, rows), quotient);
  Value output = arith::MulFOp::create(b, sums.getResult(1), b.rowsToTile(inverse, columns));
  return b.narrow(output, op.getOutput().getType().getElementType());
}

void MergeRecipe::emit() {
  Value max = emitMaximum();
  isEmpty = b.isEqual(max, kLowest);
  offset = arith::SelectOp::create(b, isEmpty, b.constant(0.0, rows), max);
  int64_t dv = op.getPartial().getType().getShape().back();
  for (int64_t column = 0; column < dv; column += kPieceColumns)
    block.pieces[op->getResult(0)].push_back(
        emitPiece(column, std::min(dv - column, kPieceColumns)));
  if (!op.getLse())
    return;
  Value log = arith::MulFOp::create(b, math::Log2Op::create(b, total), b.constant(M_LN2, rows));
  Value lse = arith::AddFOp::create(b, offset, log);
  block.mapping.map(
      op->getResult(1),
      arith::SelectOp::create(b, isEmpty, b.constant(kLowest, rows), lse).getResult());
}

LogicalResult attn::convertMerge(BlockConverter &block, MergeOp op) {
  const ArgumentSlice *partial = block.findSlice(op.getPartial()),
                      *partialLse = block.findSlice(op.getPartialLse());
  if (failed(checkMerge(op, partial && partialLse)))
    return failure();
  MergeRecipe(block, op, *partial, *partialLse).emit();
  return success();
}
