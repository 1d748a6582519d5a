//===- PruneMaskedTiles.cpp - attn-prune-masked-tiles ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/DiagonalKeys.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Pages.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/StepRanges.h"
#include "lib/Transforms/Attn/TileConditions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_PRUNEMASKEDTILESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// All tiles, all of them partial: what is known of a mask that cannot be decided.
static MaskTiles::Ranges getUndecidedRanges(StepLoop over) {
  MaskTiles::Ranges ranges;
  ranges.begin = ranges.fullBegin = ranges.fullEnd = over.loop.getLowerBound();
  ranges.end = over.length;
  ranges.mayHaveLeftPartial = ranges.mayHaveFull = false;
  ranges.mayHaveRightPartial = true;
  return ranges;
}

/// All rows of the head that the step's block is of; the block's own if its query is no slice.
static MaskBlock getAllRows(OpBuilder &builder, StepLoop over, MaskBlock block) {
  Location loc = over.loop.getLoc();
  auto slice = over.step.getFixed().getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return block;
  unsigned dim = getRowsDim(slice);
  Value first = getValueOrCreateConstantIndexOp(builder, loc, slice.getMixedOffsets()[dim]);
  Value rows = getValueOrCreateConstantIndexOp(
      builder, loc, tensor::getMixedSize(builder, loc, slice.getSource(), dim));
  block.fixedBegin = block.fixedBegin == first
                         ? arith::ConstantIndexOp::create(builder, loc, 0).getResult()
                         : builder.createOrFold<arith::SubIOp>(loc, block.fixedBegin, first);
  block.fixedEnd = builder.createOrFold<arith::AddIOp>(loc, block.fixedBegin, rows);
  return block;
}

/// A target that is certain of its first tile multiplies whole tiles, zeros with what dropped keys
/// hold, which may be anything. Those behind the last that a row of the block keeps are in no tile,
/// and, if the mask leaves no holes, neither are those before the first that a row of the head
/// does. A tile of pages begins where it did, with what dropped keys hold, and so does one whose
/// place other rows of the block may not decide.
static void boundTiles(OpBuilder &builder, StepLoop &over, const MaskTiles &tiles,
                       const MaskBlock &block, bool rowsRun) {
  Location loc = over.loop.getLoc();
  over.length = tiles.emitRanges(builder, loc, block, /*tileSize=*/1).end;
  over.hasNoHoles = !rowsRun && tiles.keepsOneInterval();
  if (over.ascends || llvm::any_of(over.sources, readsPages))
    over.hasNoHoles &= tiles.keepsFromFirst();
  over.keepsDiagonal = !over.hasNoHoles && keepsDiagonal(over);
  if (!over.hasNoHoles || tiles.keepsFromFirst())
    return;
  MaskBlock all = getAllRows(builder, over, block);
  Value first = tiles.emitRanges(builder, loc, all, /*tileSize=*/1).begin;
  if (!isConstantIntValue(first, 0))
    over.first = first;
}

/// Whether rows behind the last add nothing to what the step sums up, zeros as they are, without a
/// comparison: their weight is a number (AttnToTile/GradStep.cpp).
static bool endsByItself(AbsorbingOpInterface step) {
  auto sums = dyn_cast<GradKeyValueStepOp>(step.getOperation());
  return sums && sums.getScore().empty() && sums.getGrad().empty() &&
         matchPattern(sums.getScale(), m_Constant());
}

/// Where consumers begin apart, the bounds of more and more of the block's rows, a consumer's at a
/// time, without the last one's. A mask that reads tensors is searched for its bounds, once a
/// block.
static SmallVector<Value, 2> emitPartEnds(OpBuilder &builder, StepLoop over, const MaskTiles &tiles,
                                          const MaskBlock &block) {
  auto schedule = over.step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  if (!schedule || !schedule->apart || over.ascends || readsTensors(over.step.getMask()))
    return {};
  Location loc = over.loop.getLoc();
  int64_t rows = schedule->blockM / schedule->consumers;
  SmallVector<Value, 2> ends;
  for (int64_t part : llvm::seq<int64_t>(1, schedule->consumers)) {
    Value size = arith::ConstantIndexOp::create(builder, loc, part * rows);
    Value end = arith::AddIOp::create(builder, loc, block.fixedBegin, size);
    MaskBlock first = block;
    first.fixedEnd = arith::MinSIOp::create(builder, loc, block.fixedEnd, end);
    ends.push_back(tiles.emitRanges(builder, loc, first, over.tileSize, over.lastMayBeFull).end);
  }
  return ends;
}

/// Where the mask reads something once a tile, tiles are passed over by it, and in the others the
/// mask is that of its only case, if it has one.
static void passOverTiles(StepLoop &over, bool rowsRun) {
  AbsorbingOpInterface step = over.step;
  Cell tile = getTile(over);
  TileCases cases =
      TileCases::analyze(step.getMask(), tile, factOf, rowsRun ? MaskAxis::Rows : MaskAxis::Keys);
  if (cases.getConditions().empty())
    return;
  IRMapping mapping;
  std::shared_ptr<Operation> copy(copyMask(step.getMask(), mapping).release(),
                                  [](Operation *op) { op->erase(); });
  unsigned region = step.getMask().getRegionNumber(), position = step.getRunningPosition();
  SmallVector<Value> origin(step.getOrigin());
  simplifyMask(step.getMask(), tile, cases);
  auto shared = std::make_shared<TileCases>(std::move(cases));
  over.emitIsLive = [=](OpBuilder &builder, Value n0) -> Value {
    Location loc = copy->getLoc();
    SmallVector<Value> at(origin);
    at[position] = n0;
    auto conditions = emitConditions(builder, copy->getRegion(region), tile, at);
    Value isLive;
    for (const TileCases::Case &each : shared->getCases()) {
      Value isCase = emitIsCase(builder, loc, each, conditions);
      isLive = isLive ? arith::OrIOp::create(builder, loc, isLive, isCase).getResult() : isCase;
    }
    return isLive ? isLive
                  : arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)).getResult();
  };
}

static void prune(RewriterBase &rewriter, StepLoop over, bool certain, bool passesOver) {
  Location loc = over.loop.getLoc();
  rewriter.setInsertionPoint(over.loop);
  bool rowsRun = over.step.getRunningPosition() == 2;
  if (passesOver)
    passOverTiles(over, rowsRun);
  auto probe = cast<AbsorbingOpInterface>(rewriter.clone(*over.step));
  rewriter.setInsertionPoint(probe);
  shiftMask(rewriter, loc, probe.getMask(), probe.getRunningPosition(), over.origin);
  MaskTiles tiles =
      MaskTiles::analyze(probe.getMask(), factOf, rowsRun ? MaskAxis::Rows : MaskAxis::Keys);

  if (!over.step.getMask().empty())
    remark::analysis(loc, remark::RemarkOpts::name("mask-tiles").category("attn"))
        << (tiles.isUndecided() ? "mask cannot be decided by tile: it is applied everywhere"
                                : tiles.describe());
  if (tiles.isUndecided()) {
    rewriter.eraseOp(probe);
    if (certain || over.emitIsLive) {
      over.keepsDiagonal = certain && keepsDiagonal(over);
      emitStepRanges(rewriter, over, getUndecidedRanges(over), certain);
      rewriter.eraseOp(over.loop);
    }
    return;
  }

  Value matrix = over.step.getFixed();
  OpFoldResult owned = getRows(rewriter, loc, matrix);
  ValueRange at = over.step.getOrigin();
  Value begin = at[rowsRun ? 3 : 2];
  Value end = arith::AddIOp::create(rewriter, loc, begin,
                                    getValueOrCreateConstantIndexOp(rewriter, loc, owned));
  MaskBlock block = {at[0], at[1], begin, end, over.length};
  MaskTiles::Ranges ranges =
      tiles.emitRanges(rewriter, loc, block, over.tileSize, over.lastMayBeFull);
  if (certain && !tiles.isAlwaysFull())
    boundTiles(rewriter, over, tiles, block, rowsRun);

  if (certain)
    over.partEnds = emitPartEnds(rewriter, over, tiles, block);
  emitStepRanges(rewriter, over, ranges, certain);
  rewriter.eraseOp(probe);
  rewriter.eraseOp(over.loop);
}

/// Whether tiles are visited in an order that other rows do not change.
static bool ascends(AbsorbingOpInterface step) {
  auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  return isa<OnlineAttentionOp>(step) && schedule && schedule->fixedSplit > 0;
}

/// Whether attn-list-tiles has left no tile to prune.
static bool isListed(AbsorbingOpInterface step) {
  auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  return schedule && schedule->lists;
}

namespace {
struct PruneMaskedTilesPass : RoomPass<attn::impl::PruneMaskedTilesPassBase<PruneMaskedTilesPass>,
                                       Room::Online, Room::Online> {
  using RoomPass::RoomPass;

  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AbsorbingOpInterface> steps;
    getOperation()->walk([&](AbsorbingOpInterface op) { steps.push_back(op); });
    for (AbsorbingOpInterface step : steps) {
      // Its rows end by what their sums start with, at no cost: a copy of the step without an end
      // takes registers of the one with it.
      bool isOneLoop = certainFirst && step.getRunningPosition() == 2 && step.getMask().empty();
      if (isOneLoop)
        continue;
      FailureOr<StepLoop> over = matchStepLoop(rewriter, step);
      if (succeeded(over)) {
        over->lastMayBeFull = certainFirst && endsByItself(step);
        over->ascends = ascends(step);
        // Only the softmax's steps are delayed past their first.
        prune(rewriter, *over, certainFirst && isa<OnlineAttentionOp>(step),
              /*passesOver=*/!certainFirst);
      } else if (!isListed(step))
        remark::missed(step.getLoc(), remark::RemarkOpts::name("mask-tiles").category("attn"))
            << "not in a loop made by attn-tile-kv-loop: no tile is pruned";
    }
    return success();
  }
};
} // namespace
