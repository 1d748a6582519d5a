//===- StepRanges.cpp - loops over ranges of tiles --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/StepRanges.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace attn;

void attn::setKeptKeys(ValueRange state, StringRef kept) {
  Operation *step = state[0].getDefiningOp();
  step->setAttr(kKeptKeysAttrName, StringAttr::get(step->getContext(), kept));
}

ValueRange attn::emitPartialStep(OpBuilder &builder, StepLoop over, Value n0, ValueRange state) {
  Location loc = over.loop.getLoc();
  OpFoldResult size = emitTileSize(builder, loc, over.tileSize, n0, over.length);
  Value first = n0;
  if (over.first) {
    first = arith::MaxSIOp::create(builder, loc, n0, over.first);
    Value skipped = arith::SubIOp::create(builder, loc, first, n0);
    Value all = getValueOrCreateConstantIndexOp(builder, loc, size);
    size = arith::SubIOp::create(builder, loc, all, skipped).getResult();
  }
  ValueRange next = emitTileStep(builder, over.step, over.sources, over.origin, first, size, state,
                                 /*withMask=*/true);
  if (over.hasNoHoles)
    setKeptKeys(next, over.first ? kKeepsSlice : kKeepsPrefix);
  else if (over.keepsDiagonal)
    setKeptKeys(next, kKeepsDiagonal);
  return next;
}

/// One of the loops, over [begin, end), each step on the tile at `tileAt` of the index. Tiles of a
/// partial range have a run-time size, keep the mask, and are passed over when the mask is known to
/// drop them; and so is any tile by what the mask reads once a tile.
static SmallVector<Value> emitRange(
    OpBuilder &builder, StepLoop over, const MaskTiles::Ranges &ranges, Value begin, Value end,
    bool isFull, ValueRange state,
    function_ref<Value(Value)> tileAt = [](Value at) { return at; }) {
  Location loc = over.loop.getLoc();
  auto loop = scf::ForOp::create(builder, loc, begin, end, over.loop.getStep(), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Value n0 = tileAt(loop.getInductionVar());
  ValueRange running = loop.getRegionIterArgs();
  auto emitStep = [&] {
    if (!isFull)
      return emitPartialStep(builder, over, n0, running);
    OpFoldResult size = builder.getIndexAttr(over.tileSize);
    if (over.lastMayBeFull)
      size = emitTileSize(builder, loc, over.tileSize, n0, over.length);
    return emitTileStep(builder, over.step, over.sources, over.origin, n0, size, running,
                        /*withMask=*/false);
  };
  Value isLive;
  if (!isFull) {
    Value n1 = arith::AddIOp::create(builder, loc, n0, over.loop.getStep());
    isLive = MaskTiles::emitTileIsLive(builder, loc, ranges, n0, n1);
  }
  if (over.emitIsLive) {
    Value mayKeep = over.emitIsLive(builder, n0);
    isLive = isLive ? arith::AndIOp::create(builder, loc, isLive, mayKeep).getResult() : mayKeep;
  }
  if (!isLive) {
    scf::YieldOp::create(builder, loc, emitStep());
    return llvm::to_vector_of<Value>(loop.getResults());
  }
  auto guarded =
      scf::IfOp::create(builder, loc, running.getTypes(), isLive, /*withElseRegion=*/true);
  scf::YieldOp::create(builder, loc, guarded.getResults());
  builder.setInsertionPointToEnd(guarded.thenBlock());
  scf::YieldOp::create(builder, loc, emitStep());
  builder.setInsertionPointToEnd(guarded.elseBlock());
  scf::YieldOp::create(builder, loc, running);
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// Lets the mask of `step` keep everything where `isFull` holds, a value outside of the mask.
static void keepAllWhere(Value isFull, AbsorbingOpInterface step) {
  Operation *yield = step.getMask().front().getTerminator();
  OpBuilder builder(yield);
  yield->setOperand(0,
                    arith::OrIOp::create(builder, yield->getLoc(), isFull, yield->getOperand(0)));
}

/// Whether the tile at n0, one of [begin, end), is one of the full ones.
static Value emitIsFull(OpBuilder &builder, Location loc, const MaskTiles::Ranges &ranges,
                        Value n0) {
  Value isBefore, isBehind;
  if (ranges.mayHaveRightPartial)
    isBefore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, n0, ranges.fullEnd);
  if (ranges.mayHaveLeftPartial)
    isBehind = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, n0, ranges.fullBegin);
  if (isBefore && isBehind)
    return arith::AndIOp::create(builder, loc, isBehind, isBefore);
  return isBefore ? isBefore : isBehind;
}

/// One loop over tiles [begin, end) of constant size, full and partial alike: the mask says for
/// each tile whether it applies.
static ValueRange emitMixedRange(OpBuilder &builder, StepLoop over, const MaskTiles::Ranges &ranges,
                                 Value begin, Value end, ValueRange state) {
  Location loc = over.loop.getLoc();
  auto loop = scf::ForOp::create(builder, loc, begin, end, over.loop.getStep(), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Value n0 = loop.getInductionVar();
  ValueRange next = emitTileStep(builder, over.step, over.sources, over.origin, n0,
                                 builder.getIndexAttr(over.tileSize), loop.getRegionIterArgs(),
                                 /*withMask=*/true);
  auto step = next[0].getDefiningOp<AbsorbingOpInterface>();
  if (over.hasNoHoles && !over.first)
    setKeptKeys(next, kKeepsPrefix);
  else if (over.keepsDiagonal)
    setKeptKeys(next, kKeepsDiagonal);
  if (ranges.mayHaveFull) {
    builder.setInsertionPoint(step);
    keepAllWhere(emitIsFull(builder, loc, ranges, n0), step);
    builder.setInsertionPointAfter(step);
  }
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

/// Whether one loop should visit full and partial tiles alike. Where the regions read tensors,
/// tiles are often partial, and few may be full: loops of both kinds overlap their steps only if
/// partial tiles are few.
static bool prefersOneLoop(AbsorbingOpInterface step) {
  // Beyond 128 rows threads have no registers to spare for a mask that waits beside every tile.
  auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  if (schedule && schedule->blockM > 128)
    return false;
  return readsTensors(step.getScore()) || readsTensors(step.getMask());
}

/// The start of the last of the tiles that end at `end` > 0.
static Value emitLastTile(OpBuilder &builder, Location loc, Value end, int64_t tileSize) {
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value size = arith::ConstantIndexOp::create(builder, loc, tileSize);
  Value before = arith::SubIOp::create(builder, loc, end, one);
  Value index = arith::DivUIOp::create(builder, loc, before, size);
  return arith::MulIOp::create(builder, loc, index, size);
}

/// The order in which a block that has tiles visits them.
enum class Visit {
  /// The first tile on its own, then the loops over the others in their order.
  Ascending,
  /// The partial tiles in a loop that is certain to run, then the full ones.
  PartialsFirst,
  /// The last tile on its own, then the loops over the others.
  LastFirst,
  /// The last tile on its own, then one loop over all the others.
  LastFirstThenMixed,
};

static Visit chooseVisit(const StepLoop &over, const MaskTiles::Ranges &ranges, bool isMasked) {
  if (over.ascends)
    return Visit::Ascending;
  if (!isMasked || !ranges.live.empty())
    return Visit::LastFirst;
  if (prefersOneLoop(over.step))
    return Visit::LastFirstThenMixed;
  // Few tiles are partial where others are full, and one copy of the step does for all of them.
  return ranges.mayHaveFull && ranges.mayHaveRightPartial ? Visit::PartialsFirst : Visit::LastFirst;
}

/// The tile at n0, the first or the last one, on its own, with the mask where any tile has it.
static SmallVector<Value> emitOneStep(OpBuilder &builder, StepLoop over,
                                      const MaskTiles::Ranges &ranges, Value n0, bool isMasked,
                                      ValueRange state) {
  if (isMasked)
    return SmallVector<Value>(emitPartialStep(builder, over, n0, state));
  OpFoldResult size = builder.getIndexAttr(over.tileSize);
  if (ranges.mayHaveLeftPartial || ranges.mayHaveRightPartial)
    size = emitTileSize(builder, over.loop.getLoc(), over.tileSize, n0, over.length);
  return SmallVector<Value>(emitTileStep(builder, over.step, over.sources, over.origin, n0, size,
                                         state,
                                         /*withMask=*/false));
}

/// The three loops; `until` bounds the first two, and `from`, the second tile, all of them.
static SmallVector<Value> emitLoops(OpBuilder &builder, StepLoop over,
                                    const MaskTiles::Ranges &ranges, Value until, bool hasRight,
                                    ValueRange inits, Value from = {}) {
  SmallVector<Value> state(inits);
  auto append = [&](bool exists, Value begin, Value end, bool isFull) {
    if (!exists)
      return;
    if (until)
      end = arith::MinSIOp::create(builder, over.loop.getLoc(), end, until);
    if (from)
      begin = begin == ranges.begin
                  ? from
                  : arith::MaxSIOp::create(builder, over.loop.getLoc(), begin, from).getResult();
    state = emitRange(builder, over, ranges, begin, end, isFull, state);
  };
  append(ranges.mayHaveLeftPartial, ranges.begin, ranges.fullBegin, /*isFull=*/false);
  append(ranges.mayHaveFull, ranges.fullBegin, ranges.fullEnd, /*isFull=*/true);
  append(hasRight, ranges.fullEnd, ranges.end, /*isFull=*/false);
  return state;
}

/// Where the loop over [right, end), whose turns go from the tile `last` to the first, begins for
/// each consumer: with the last tile that its rows need, or with the first where they need none.
static Value emitPartBegin(OpBuilder &builder, StepLoop over, Value right, Value last, Value end) {
  Location loc = over.loop.getLoc();
  SmallVector<Value> begins;
  for (Value partEnd : over.partEnds) {
    Value passed = arith::SubIOp::create(builder, loc, end, partEnd);
    Value begin = arith::AddIOp::create(builder, loc, right, passed);
    begin = arith::MaxSIOp::create(builder, loc, begin, right);
    begins.push_back(arith::MinSIOp::create(builder, loc, begin, last));
  }
  begins.push_back(right);
  return PartBeginOp::create(builder, loc, builder.getIndexType(), right, begins);
}

/// All partial tiles, those on the right first, in one loop over [right, end of the last), behind
/// which the positions of those on the left follow. The bounds show that it runs: the last tile is
/// in it even if it is full, and starts at `last`. `right` is where it begins, and full tiles end.
static SmallVector<Value> emitPartials(OpBuilder &builder, StepLoop over,
                                       const MaskTiles::Ranges &ranges, Value right, Value last,
                                       ValueRange state) {
  Location loc = over.loop.getLoc();
  Value begin = right, end = ranges.end, shift, mirror;
  if (!over.partEnds.empty()) {
    begin = emitPartBegin(builder, over, right, last, end);
    mirror = arith::AddIOp::create(builder, loc, right, last);
  }
  if (ranges.mayHaveLeftPartial) {
    Value leftEnd = arith::MinSIOp::create(builder, loc, ranges.fullBegin, right);
    Value length = arith::SubIOp::create(builder, loc, leftEnd, ranges.begin);
    end =
        arith::MaxSIOp::create(builder, loc, end, arith::AddIOp::create(builder, loc, end, length));
    shift = arith::SubIOp::create(builder, loc, ranges.end, ranges.begin);
  }
  return emitRange(
      builder, over, ranges, begin, end, /*isFull=*/false, state, [&](Value at) -> Value {
        Value tile = mirror ? arith::SubIOp::create(builder, loc, mirror, at).getResult() : at;
        if (!shift)
          return tile;
        Value isRight =
            arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, at, ranges.end);
        return arith::SelectOp::create(builder, loc, isRight, tile,
                                       arith::SubIOp::create(builder, loc, at, shift));
      });
}

/// The loops of a block that has tiles, and whose first step is certain to run.
static SmallVector<Value> emitCertain(OpBuilder &builder, StepLoop over,
                                      const MaskTiles::Ranges &ranges, ValueRange inits) {
  Location loc = over.loop.getLoc();
  bool isMasked =
      !over.step.getMask().empty() && (ranges.mayHaveLeftPartial || ranges.mayHaveRightPartial);
  Visit visit = chooseVisit(over, ranges, isMasked);
  if (visit == Visit::PartialsFirst) {
    Value last = arith::SubIOp::create(builder, loc, ranges.end, over.loop.getStep());
    Value right = arith::MinSIOp::create(builder, loc, ranges.fullEnd, last);
    SmallVector<Value> state = emitPartials(builder, over, ranges, right, last, inits);
    return emitRange(builder, over, ranges, ranges.fullBegin, right, /*isFull=*/true, state);
  }
  if (visit == Visit::Ascending) {
    SmallVector<Value> state = emitOneStep(builder, over, ranges, ranges.begin, isMasked, inits);
    Value from = arith::AddIOp::create(builder, loc, ranges.begin, over.loop.getStep());
    return emitLoops(builder, over, ranges, /*until=*/{}, ranges.mayHaveRightPartial, state, from);
  }
  Value last = emitLastTile(builder, loc, ranges.end, over.tileSize);
  SmallVector<Value> state = emitOneStep(builder, over, ranges, last, isMasked, inits);
  if (visit == Visit::LastFirstThenMixed)
    return emitMixedRange(builder, over, ranges, ranges.begin, last, state);
  // Without a mask only the last tile can be partial.
  return emitLoops(builder, over, ranges, last, ranges.mayHaveRightPartial && isMasked, state);
}

void attn::emitStepRanges(OpBuilder &builder, StepLoop over, const MaskTiles::Ranges &ranges,
                          bool certain) {
  Location loc = over.loop.getLoc();
  ValueRange inits = over.loop.getInitArgs();
  OpBuilder::InsertionGuard guard(builder);
  if (!certain) {
    over.loop.getResults().replaceAllUsesWith(
        emitLoops(builder, over, ranges, /*until=*/{}, ranges.mayHaveRightPartial, inits));
    return;
  }
  Value hasTiles =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, ranges.begin, ranges.end);
  auto any = scf::IfOp::create(builder, loc, inits.getTypes(), hasTiles, /*withElseRegion=*/true);
  builder.setInsertionPointToEnd(any.elseBlock());
  scf::YieldOp::create(builder, loc, inits);
  builder.setInsertionPointToEnd(any.thenBlock());
  scf::YieldOp::create(builder, loc, emitCertain(builder, over, ranges, inits));
  over.loop.getResults().replaceAllUsesWith(any.getResults());
}
