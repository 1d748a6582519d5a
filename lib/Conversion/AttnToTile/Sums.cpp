//===- Sums.cpp - sums over whole tensors, on tiles -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A linalg.generic that sums: what it keeps lies in the rows of a tile, the last dimension that it
// sums over in the columns, and loops run over the others. Elements are gathered, so any dimension
// of an operand may be either. A block adds in one order.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/Regions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

/// Of a tile: enough to hide what a gather waits for.
static constexpr int64_t kColumns = 128;

namespace {
class Sum {
public:
  Sum(BlockConverter &block, linalg::GenericOp op) : block(block), b(block.builder), op(op) {}
  LogicalResult convert();

private:
  LogicalResult check();
  LogicalResult findSizes();
  /// Loops over the dimensions that are summed from the `next`-th on.
  Value emitLoops(unsigned next, Value sum);
  Value emitTile(Value sum);
  Value emitOperand(OpOperand &operand);
  /// first + 0, 1, .. along rows or columns, inside of the dimension.
  Value emitPositions(unsigned along, Value first, Value size);

  BlockConverter &block;
  TileBuilder &b;
  linalg::GenericOp op;
  RankedTensorType shape;
  unsigned kept = 0;
  SmallVector<unsigned> summed;
  /// Of each dimension; the coordinates of a tile within it, scalars or tiles.
  SmallVector<Value> sizes, at;
  Value isInside;
  bool isBad = false;
};
} // namespace

/// out + x or out - x, of f32 that start with zeros.
LogicalResult Sum::check() {
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  op.getReductionDims(summed);
  BlockArgument running = op.getBlock()->getArguments().back();
  Operation *last = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  bool isSum = isa_and_nonnull<arith::AddFOp, arith::SubFOp>(last) &&
               last->getOperand(0) == running && running.hasOneUse() && running.getType().isF32();
  // The dimension of the results, and nothing else of theirs.
  auto isKept = [&](unsigned dim) {
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    return map.getNumResults() == 1 && map.isFunctionOfDim(dim);
  };
  if (op.getNumDpsInits() != 1 || parallel.size() != 1 || summed.empty() || !isSum ||
      !isKept(parallel.front()))
    return op.emitOpError("expected one sum of f32 in each element of one dimension");
  kept = parallel.front();
  auto slice = op.getDpsInits()[0].getDefiningOp<tensor::ExtractSliceOp>();
  auto argument = slice ? dyn_cast<BlockArgument>(slice.getSource()) : BlockArgument();
  auto fill = argument && argument.getOwner() == block.grid.getBody()
                  ? block.grid.getTiedOpOperand(argument)->get().getDefiningOp<linalg::FillOp>()
                  : linalg::FillOp();
  if (!fill || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()))
    return op.emitOpError("expected sums that start with zeros");
  return success();
}

LogicalResult Sum::findSizes() {
  sizes.resize(op.getNumLoops());
  // No operand may have it.
  sizes[kept] = block.findSlice(op.getDpsInits()[0])->sizes.front();
  for (OpOperand *operand : op.getDpsInputOperands()) {
    const ArgumentSlice *slice = block.findSlice(operand->get());
    if (!slice)
      return op.emitOpError("expected operands that are slices of the kernel's arguments");
    for (auto [dim, size] :
         llvm::zip_equal(op.getMatchingIndexingMap(operand).getResults(), slice->sizes)) {
      auto position = dyn_cast<AffineDimExpr>(dim);
      if (!position)
        return op.emitOpError("expected operands that are read by their dimensions");
      sizes[position.getPosition()] = size;
    }
  }
  return success();
}

Value Sum::emitPositions(unsigned along, Value first, Value size) {
  Value positions = tile::CoordOp::create(b, shape.clone(b.getIndexType()), along, first);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  return b.clampBelow(positions, zero, size);
}

Value Sum::emitOperand(OpOperand &operand) {
  const ArgumentSlice &slice = *block.findSlice(operand.get());
  SmallVector<Value> indices = slice.position;
  size_t dropped = indices.size() - slice.sizes.size();
  bool isTile = false;
  for (auto [i, dim] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    Value local = at[cast<AffineDimExpr>(dim).getPosition()], &index = indices[dropped + i];
    if (isa<RankedTensorType>(local.getType())) {
      isTile = true;
      index = b.splat(index, shape.getShape());
    }
    index = b.createOrFold<arith::AddIOp>(index, local);
  }
  Type element = cast<MemRefType>(slice.memref.getType()).getElementType();
  Value elements =
      isTile ? tile::GatherOp::create(b, shape.clone(element), slice.memref, indices).getResult()
             : memref::LoadOp::create(b, slice.memref, indices).getResult();
  const RowNumbers *numbers = block.findRowNumbers(slice.memref);
  return numbers ? negateIf(b, numbers->isNegated, elements) : elements;
}

Value Sum::emitTile(Value sum) {
  SmallVector<Value> arguments;
  for (OpOperand *operand : op.getDpsInputOperands())
    arguments.push_back(emitOperand(*operand));
  Value zero = b.constant(0, shape.getShape());
  arguments.push_back(zero);
  Value term = inlineRegion(block, op.getRegion(), arguments, shape);
  if (!term) {
    isBad = true;
    return sum;
  }
  b.setLoc(op.getLoc());
  term = arith::SelectOp::create(b, isInside, term, zero);
  return tile::ReduceOp::create(b, cast<RankedTensorType>(sum.getType()), tile::Combiner::Add, term,
                                sum);
}

Value Sum::emitLoops(unsigned next, Value sum) {
  unsigned dim = summed[next];
  bool isLast = next + 1 == summed.size();
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value step = arith::ConstantIndexOp::create(b, isLast ? kColumns : 1);
  auto loop = scf::ForOp::create(b, zero, sizes[dim], step, ValueRange(sum));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  at[dim] = loop.getInductionVar();
  Value result;
  if (isLast) {
    Value column =
        tile::CoordOp::create(b, shape.clone(b.getIndexType()), 1, loop.getInductionVar());
    isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                                     b.splat(sizes[dim], shape.getShape()));
    at[dim] = emitPositions(/*along=*/1, loop.getInductionVar(), sizes[dim]);
    at[kept] = emitPositions(/*along=*/0, zero, sizes[kept]);
    result = emitTile(loop.getRegionIterArg(0));
  } else {
    result = emitLoops(next + 1, loop.getRegionIterArg(0));
  }
  scf::YieldOp::create(b, result);
  return loop.getResult(0);
}

LogicalResult Sum::convert() {
  if (failed(check()) || failed(findSizes()))
    return failure();
  shape = RankedTensorType::get({block.rows, kColumns}, b.getF32Type());
  at.resize(op.getNumLoops());
  block.mapping.map(op.getResult(0), emitLoops(0, b.constant(0, {block.rows})));
  return success(!isBad);
}

LogicalResult attn::convertSum(BlockConverter &block, linalg::GenericOp op) {
  return Sum(block, op).convert();
}
