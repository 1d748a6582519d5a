//===- SplitGroups.cpp - attn-split-groups ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Query heads that share keys are the business of one block of keys, one after the other. Where few
// heads have keys there are few such blocks. So each block gets a part of the query heads:
//
//   part p: query heads [p * size, (p + 1) * size) of the group, with size = ceil(heads / parts)
//
// Its sums are f32, in scratch, scaled. A further grid adds the parts in order and rounds: the bits
// are the same in each call with as many parts.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/GroupParts.h"
#include "lib/Transforms/Attn/MergedRows.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/PartGrid.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/Target.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_SPLITGROUPSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A grid whose block is: one loop over the query heads of a group, the ends of its sums, and their
/// insertions into the results.
struct GroupGrid {
  scf::ForallOp forall;
  GradKeyValueStepOp step;
  scf::ForOp heads;
  SmallVector<GradEndOp> ends;
  /// Where each end goes, in order.
  SmallVector<tensor::ParallelInsertSliceOp> inserts;
};
} // namespace

static FailureOr<GroupGrid> matchGrid(GradKeyValueStepOp step) {
  GroupGrid grid = {step->getParentOfType<scf::ForallOp>(), step, {}, {}, {}};
  grid.heads = dyn_cast<scf::ForOp>(step->getParentOp());
  if (!grid.forall || grid.forall.getRank() != 3 || !grid.heads ||
      grid.heads->getParentOp() != grid.forall || !isZeroInteger(grid.heads.getLowerBound()) ||
      !isOneInteger(grid.heads.getStep()))
    return failure();
  for (GradEndOp end : grid.forall.getOps<GradEndOp>()) {
    auto insert = end->hasOneUse() ? dyn_cast<tensor::ParallelInsertSliceOp>(*end->user_begin())
                                   : tensor::ParallelInsertSliceOp();
    if (!insert || insert.getDestType().getRank() != 4 || !insert.hasUnitStride())
      return failure();
    grid.ends.push_back(end);
    grid.inserts.push_back(insert);
  }
  bool isEach = grid.ends.size() == grid.forall.getNumResults() &&
                llvm::all_of(llvm::enumerate(grid.inserts), [&](auto each) {
                  return each.value().getDest() == grid.forall.getRegionOutArgs()[each.index()];
                });
  if (!isEach)
    return failure();
  return grid;
}

/// How many parts there are: what the device decides for the grid.
static Value emitParts(OpBuilder &builder, GroupGrid &grid, ScheduleAttr schedule) {
  scf::ForallOp forall = grid.forall;
  Location loc = forall.getLoc();
  SmallVector<OpFoldResult> bounds = forall.getMixedUpperBound();
  AffineExpr size = builder.getAffineSymbolExpr(0);
  bounds.back() = affine::makeComposedFoldedAffineApply(
      builder, loc, size.ceilDiv(countKeysOfUnit(schedule, !grid.step.getMask().empty())),
      {bounds.back()});
  SmallVector<Value> blocks = getValueOrCreateConstantIndexOp(builder, loc, bounds);
  OpFoldResult heads = tensor::getMixedSize(builder, loc, getWhole(grid.step.getQuery()), 1);
  return CountPartsOp::create(builder, loc, builder.getIndexType(), blocks,
                              getValueOrCreateConstantIndexOp(builder, loc, heads),
                              schedule->splits);
}

/// Lets the loop visit the query heads of part `part` alone.
static void restrictHeads(RewriterBase &rewriter, scf::ForOp heads, Value part, Value parts) {
  Location loc = heads.getLoc();
  rewriter.setInsertionPoint(heads);
  AffineExpr index, count, all;
  bindSymbols(rewriter.getContext(), index, count, all);
  OpFoldResult total = heads.getUpperBound();
  OpFoldResult size = affine::makeComposedFoldedAffineApply(rewriter, loc, all.ceilDiv(count),
                                                            {part, parts, total});
  auto clamp = [&](AffineExpr at) {
    return getValueOrCreateConstantIndexOp(
        rewriter, loc,
        affine::makeComposedFoldedAffineMin(rewriter, loc,
                                            AffineMap::get(0, 3, {at, all}, rewriter.getContext()),
                                            {part, size, total}));
  };
  Value begin = clamp(index * count), end = clamp(index * count + count);
  rewriter.modifyOpInPlace(heads, [&] {
    heads.setLowerBound(begin);
    heads.setUpperBound(end);
  });
}

/// Stores the sums of the part where the old block stored its results.
static void storePartials(RewriterBase &rewriter, GroupGrid &grid, scf::ForallOp split) {
  Location loc = split.getLoc();
  Value part = split.getInductionVars().front();
  for (auto [end, insert, partial] :
       llvm::zip_equal(grid.ends, grid.inserts, split.getRegionOutArgs())) {
    rewriter.setInsertionPoint(end);
    SmallVector<OpFoldResult> offsets = insert.getMixedOffsets(), sizes = insert.getMixedSizes();
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, ArrayRef(sizes).take_back(2), rewriter.getF32Type());
    Value sum =
        GradEndOp::create(rewriter, loc, empty.getType(), end.getAcc(), end.getScale(), empty)
            ->getResult(0);
    offsets.insert(offsets.begin(), OpFoldResult(part));
    sizes.insert(sizes.begin(), rewriter.getIndexAttr(1));
    SmallVector<OpFoldResult> strides(offsets.size(), rewriter.getIndexAttr(1));
    rewriter.setInsertionPointToEnd(split.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(rewriter, loc, sum, partial, offsets, sizes, strides);
    rewriter.eraseOp(insert);
  }
}

/// One of the results: a grid that adds its parts and ends the sum.
static Value emitSum(RewriterBase &rewriter, GradEndOp end, Value partial, Value result,
                     Value parts) {
  Location loc = end.getLoc();
  auto type = cast<RankedTensorType>(result.getType());
  int64_t rows = getJoinedRows(end, type.getShape().back());
  OpFoldResult zero = rewriter.getIndexAttr(0), one = rewriter.getIndexAttr(1);
  SmallVector<OpFoldResult> extents = tensor::getMixedSizes(rewriter, loc, result);
  SmallVector<OpFoldResult> steps = {one, one, rewriter.getIndexAttr(rows)};
  auto grid = scf::ForallOp::create(
      rewriter, loc, SmallVector<OpFoldResult>(3, zero), ArrayRef(extents).take_front(3), steps,
      result, rewriter.getArrayAttr(getBlockMapping(rewriter.getContext(), /*rank=*/3)));
  rewriter.setInsertionPoint(grid.getTerminator());
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(grid.getInductionVars());
  offsets.push_back(zero);
  AffineExpr first, size;
  bindDims(rewriter.getContext(), first);
  bindSymbols(rewriter.getContext(), size);
  OpFoldResult tile = affine::makeComposedFoldedAffineMin(
      rewriter, loc,
      AffineMap::get(1, 1, {size - first, rewriter.getAffineConstantExpr(rows)},
                     rewriter.getContext()),
      {offsets[2], extents[2]});
  SmallVector<OpFoldResult> sizes = {one, one, tile, extents[3]};
  SmallVector<OpFoldResult> matrix = {tile, extents[3]};
  Value start = emitFill(rewriter, loc, matrix, 0);
  auto loop = scf::ForOp::create(rewriter, loc, arith::ConstantIndexOp::create(rewriter, loc, 0),
                                 parts, arith::ConstantIndexOp::create(rewriter, loc, 1), start);
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    SmallVector<OpFoldResult> from = offsets, of = sizes;
    from.insert(from.begin(), OpFoldResult(loop.getInductionVar()));
    of.insert(of.begin(), one);
    Value added =
        tensor::ExtractSliceOp::create(rewriter, loc, cast<RankedTensorType>(start.getType()),
                                       partial, from, of, SmallVector<OpFoldResult>(5, one));
    Value sum = arith::AddFOp::create(rewriter, loc, loop.getRegionIterArg(0), added);
    scf::YieldOp::create(rewriter, loc, sum);
  }
  Value empty = tensor::EmptyOp::create(rewriter, loc, matrix, type.getElementType());
  auto whole = GradEndOp::create(rewriter, loc, empty.getType(), loop.getResult(0),
                                 /*scale=*/Value(), empty);
  rewriter.setInsertionPointToEnd(grid.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(rewriter, loc, whole->getResult(0),
                                        grid.getRegionOutArgs()[0], offsets, sizes,
                                        SmallVector<OpFoldResult>(4, one));
  rewriter.setInsertionPointAfter(grid);
  return grid.getResult(0);
}

static LogicalResult splitGroup(RewriterBase &rewriter, GradKeyValueStepOp step,
                                ScheduleAttr schedule) {
  FailureOr<GroupGrid> grid = matchGrid(step);
  if (failed(grid))
    return failure();
  scf::ForallOp forall = grid->forall;
  Location loc = step.getLoc();
  rewriter.setInsertionPoint(forall);
  Value parts = emitParts(rewriter, *grid, schedule);
  SmallVector<Value> outputs(forall.getOutputs()), partials;
  for (Value output : outputs) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, output);
    sizes.insert(sizes.begin(), OpFoldResult(parts));
    partials.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getF32Type()));
  }
  scf::ForallOp split =
      addParts(rewriter, forall, parts, partials, /*headsFirst=*/!step.getMask().empty());
  restrictHeads(rewriter, grid->heads, split.getInductionVars().front(), parts);
  storePartials(rewriter, *grid, split);
  rewriter.setInsertionPointAfter(split);
  SmallVector<Value> sums;
  for (auto [end, partial, output] : llvm::zip_equal(grid->ends, split.getResults(), outputs))
    sums.push_back(emitSum(rewriter, end, partial, output, parts));
  rewriter.replaceOp(forall, sums);
  for (GradEndOp end : grid->ends)
    rewriter.eraseOp(end);
  return success();
}

namespace {
struct SplitGroupsPass
    : RoomPass<attn::impl::SplitGroupsPassBase<SplitGroupsPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<GradKeyValueStepOp> steps;
    getOperation()->walk([&](GradKeyValueStepOp step) { steps.push_back(step); });
    for (GradKeyValueStepOp step : steps) {
      auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      if (!schedule || schedule->splits == 1 || !isForGPU(step))
        continue;
      Location loc = step.getLoc();
      auto options = remark::RemarkOpts::name("split-groups").category("attn");
      if (failed(splitGroup(rewriter, step, schedule)))
        remark::missed(loc, options)
            << "query heads are not split: their sums do not leave the grid directly";
      else
        remark::passed(loc, options) << ("query heads of a group are split over up to " +
                                         Twine(schedule->splits) + " blocks")
                                            .str();
    }
    return success();
  }
};
} // namespace
