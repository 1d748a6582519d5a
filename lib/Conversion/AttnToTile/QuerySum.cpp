//===- QuerySum.cpp - gradients of queries that blocks of keys add up -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// In the fused form a block that owns keys has the gradients of scores anyway: two products fewer
// than where blocks that own rows compute them again. Blocks add in any order, so the sum is f32,
// in scratch. The kernel before them, which reads the rows anyway, starts it with zeros, and what
// was the pass over rows scales and rounds it.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/QuerySum.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/SizeFactor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------------------------===//
// Which grids
//===----------------------------------------------------------------------------------------===//

/// The step of the grid, if it is marked; all of its steps are alike.
template <typename OpT> static OpT findStep(scf::ForallOp grid) {
  OpT found;
  grid.walk([&](OpT step) {
    if (step->hasAttr(kFusedAttrName) && step->hasAttr(kScheduleAttrName))
      found = step;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether both are steps of one gradient.
static bool isPair(GradKeyValueStepOp keys, GradQueryStepOp rows) {
  if (!keys || !rows || keys->getAttr(kFusedAttrName) != rows->getAttr(kFusedAttrName))
    return false;
  return llvm::all_of(
      llvm::zip_equal(keys->getOperands().take_front(6), rows->getOperands().take_front(6)),
      [](auto pair) {
        auto [a, b] = pair;
        return getWhole(a) == getWhole(b);
      });
}

/// Whether columns are most rows of a product, in whole fragments.
static bool areRowsOfProduct(int64_t columns, int64_t rows) {
  return columns <= rows && 2 * columns > rows && columns % kFragmentRows == 0;
}

/// The grid that says what the step reads of rows, or null.
static scf::ForallOp findNumbers(GradKeyValueStepOp step) {
  auto grid = getWhole(step.getDelta()).getDefiningOp<scf::ForallOp>();
  return grid && grid.getRank() == 3 && hasRowNumbers(grid) ? grid : scf::ForallOp();
}

SmallVector<FusedGrids> attn::findFusedGrids(ArrayRef<scf::ForallOp> grids) {
  SmallVector<FusedGrids> pairs;
  for (scf::ForallOp keys : grids)
    for (scf::ForallOp rows : grids) {
      auto step = findStep<GradKeyValueStepOp>(keys);
      if (!isPair(step, findStep<GradQueryStepOp>(rows)))
        continue;
      auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      int64_t running = schedule->blockM, owned = schedule->blockN,
              columns = cast<ShapedType>(step.getQuery().getType()).getDimSize(1);
      Value query = getWhole(step.getQuery());
      bool isOfFunction = query && query.getParentBlock() == keys->getBlock() &&
                          (isa<BlockArgument>(query) || query.getDefiningOp<RaggedOp>());
      scf::ForallOp numbers = findNumbers(step);
      // The product has the rows that all products of the block have; rows after D add nothing.
      if (isOfFunction && numbers && (running == owned || areRowsOfProduct(columns, owned)))
        pairs.push_back(
            {keys, rows, numbers, query, running, columns, /*isTransposed=*/running != owned});
    }
  return pairs;
}

MemRefType FusedGrids::getType() const {
  int64_t matrix[] = {isTransposed ? columns : running, isTransposed ? running : columns};
  constexpr int64_t any = ShapedType::kDynamic;
  MLIRContext *context = query.getContext();
  int64_t size = running * columns;
  auto layout = StridedLayoutAttr::get(context, /*offset=*/0, {any, any, size, matrix[1], 1});
  return MemRefType::get({any, any, any, matrix[0], matrix[1]}, Float32Type::get(context), layout);
}

FailureOr<Attribute> FusedGrids::getSize(unsigned dim) {
  int64_t step = dim == 2 ? running : 1;
  auto argument = dyn_cast<BlockArgument>(query);
  auto type = cast<RankedTensorType>(query.getType());
  MLIRContext *context = query.getContext();
  if (argument && type.isDynamicDim(dim))
    return Attribute(plan::ExtentAttr::get(context, argument.getArgNumber(), dim, step,
                                           /*multiplier=*/1, /*unit=*/1, /*less=*/0));
  if (argument)
    return getSizeFactor(numbers, Builder(context).getIndexAttr(type.getDimSize(dim)), step);
  // Of sequences, numbers of rows are as many; they are scratch already, so that they have sizes.
  auto empty = numbers.getOutputs().front().getDefiningOp<tensor::EmptyOp>();
  return getSizeFactor(numbers, empty.getMixedSizes()[dim], step);
}

//===----------------------------------------------------------------------------------------===//
// Zeros
//===----------------------------------------------------------------------------------------===//

void attn::startQuerySum(TileBuilder &b, Value sum, int64_t running, ArrayRef<Value> position,
                         int64_t rows, Value size) {
  ArrayRef<int64_t> matrix = cast<MemRefType>(sum.getType()).getShape().take_back(2);
  // Elements outside of the matrix are not stored.
  int64_t tile[] = {int64_t(llvm::alignTo(matrix[0], rows)), matrix[1]};
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value extent = arith::ConstantIndexOp::create(b, running);
  Value end =
      arith::AddIOp::create(b, position[2], size ? size : arith::ConstantIndexOp::create(b, rows));
  Value count = memref::DimOp::create(b, sum, arith::ConstantIndexOp::create(b, 2));
  // Tiles whose first rows the block owns.
  Value first = arith::CeilDivUIOp::create(b, position[2], extent);
  Value last = arith::MinUIOp::create(b, arith::CeilDivUIOp::create(b, end, extent), count);
  auto loop = scf::ForOp::create(b, first, last, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value place[] = {position[0], position[1], loop.getInductionVar(), zero, zero};
  tile::StoreOp::create(b, b.constant(0, tile), sum, place);
}

//===----------------------------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------------------------===//

Value attn::loadQuerySum(BlockConverter &block, ArrayRef<Value> position, Value size,
                         int64_t columns) {
  TileBuilder &b = block.builder;
  const QuerySum &sum = *block.querySum;
  auto shape = RankedTensorType::get({block.rows, columns}, b.getF32Type());
  auto positions = shape.clone(b.getIndexType());
  Value row = tile::CoordOp::create(b, positions, 0, position[2]);
  row = b.clampBelow(row, position[2], size);
  // Blocks past the end of a sequence have no row, and read some that is there.
  if (llvm::any_of(block.grid->getUsers(), llvm::IsaPred<PlaceOp>))
    row = arith::MaxSIOp::create(
        b, row, b.splat(arith::ConstantIndexOp::create(b, 0), positions.getShape()));
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value column = tile::CoordOp::create(b, positions, 1, zero);
  Value extent = b.splat(arith::ConstantIndexOp::create(b, sum.running), shape.getShape());
  Value tile = arith::DivUIOp::create(b, row, extent),
        inTile = arith::RemUIOp::create(b, row, extent);
  SmallVector<Value> indices = {position[0], position[1], tile, inTile, column};
  if (sum.isTransposed)
    std::swap(indices[3], indices[4]);
  return tile::GatherOp::create(b, shape, sum.memref, indices);
}
