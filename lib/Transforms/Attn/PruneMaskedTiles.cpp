//===- PruneMaskedTiles.cpp - attn-prune-masked-tiles ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/MaskTiles.h"
#include "lib/Transforms/Attn/KVStep.h"
#include "lib/Transforms/Attn/Levels.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_PRUNEMASKEDTILESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// What attn-tile-kv-loop makes: a loop over [0, numKeys) whose body is one step on a tile of `key` and `value`.
struct KVLoop {
  scf::ForOp loop;
  OnlineAttentionOp step;
  Value key, value, numKeys;
  int64_t blockN;
  /// Global position of the first key: the step's position less the loop's index.
  OpFoldResult origin;
};
} // namespace

/// The tensor of which `tile` is the slice of `blockN` keys, or of a run-time number, at [n0, 0],
/// or null.
static Value getTiledSource(Value tile, Value n0, int64_t blockN) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || getConstantIntValue(slice.getMixedSizes()[0]).value_or(blockN) != blockN ||
      slice.getMixedOffsets()[0] != OpFoldResult(n0) ||
      !isConstantIntValue(slice.getMixedOffsets()[1], 0))
    return {};
  return slice.getSource();
}

/// `position` = origin + n0, as attn-tile-kv-loop wrote and canonicalization may have simplified it.
static FailureOr<OpFoldResult> getOrigin(OpBuilder &builder, Value position, Value n0) {
  if (position == n0)
    return OpFoldResult(builder.getIndexAttr(0));
  auto apply = position.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return failure();
  // The sum is linear in n0 with coefficient 1; the origin is its value at n0 = 0.
  AffineMap map = apply.getAffineMap();
  OpFoldResult zero = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> operands;
  for (Value operand : apply.getMapOperands())
    operands.push_back(operand == n0 ? zero : OpFoldResult(operand));
  return affine::makeComposedFoldedAffineApply(builder, apply.getLoc(), map, operands);
}

static FailureOr<KVLoop> matchKVLoop(OpBuilder &builder, OnlineAttentionOp step) {
  auto loop = dyn_cast<scf::ForOp>(step->getParentOp());
  if (!loop || loop.getNumRegionIterArgs() != 3 || !matchPattern(loop.getLowerBound(), m_Zero()))
    return failure();
  auto blockN = getConstantIntValue(loop.getStep());
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  if (!blockN || *blockN < 1 || !llvm::equal(yield.getOperands(), step->getResults()) ||
      !llvm::equal(step.getDpsInits(), ValueRange(loop.getRegionIterArgs())))
    return failure();
  Value n0 = loop.getInductionVar();
  Value key = getTiledSource(step.getKey(), n0, *blockN), value = getTiledSource(step.getValue(), n0, *blockN);
  if (!key || !value || step.getOrigin().empty())
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  FailureOr<OpFoldResult> origin = getOrigin(builder, step.getOrigin()[3], n0);
  if (failed(origin))
    return failure();
  return KVLoop{loop, step, key, value, loop.getUpperBound(), *blockN, *origin};
}

/// Lets the mask see n counted from the loop's first key: the coordinates in which the loop runs.
static void shiftMask(OpBuilder &builder, OnlineAttentionOp op, OpFoldResult origin) {
  if (op.getMask().empty() || isConstantIntValue(origin, 0))
    return;
  Value offset = getValueOrCreateConstantIndexOp(builder, op.getLoc(), origin);
  OpBuilder inner = OpBuilder::atBlockBegin(&op.getMask().front());
  Value n = op.getMask().getArgument(3);
  auto sum = arith::AddIOp::create(inner, op.getLoc(), n, offset);
  n.replaceAllUsesExcept(sum, sum);
}

static std::optional<TensorFact> factOf(Value tensor) {
  if (auto assume = tensor.getDefiningOp<AssumeOp>(); assume && assume.getFact() == Fact::NonDecreasing)
    return TensorFact::NonDecreasing;
  return std::nullopt;
}

/// One of the loops, over tiles [begin, end). Tiles of a partial range have a run-time size, keep the mask, and are passed
/// over when the mask is known to drop them.
static ValueRange emitRange(OpBuilder &builder, KVLoop kv, const MaskTiles::Ranges &ranges, Value begin,
                            Value end, bool isFull, ValueRange state) {
  Location loc = kv.loop.getLoc();
  auto loop = scf::ForOp::create(builder, loc, begin, end, kv.loop.getStep(), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Value n0 = loop.getInductionVar();
  ValueRange running = loop.getRegionIterArgs();
  OpFoldResult size = builder.getIndexAttr(kv.blockN);
  if (!isFull)
    size = emitTileSize(builder, loc, kv.blockN, n0, kv.numKeys);
  auto emitStep = [&](OpBuilder &b) {
    return emitKVStep(b, kv.step, kv.key, kv.value, kv.origin, n0, size, running, /*withMask=*/!isFull);
  };
  Value isLive;
  if (!isFull) {
    Value n1 = arith::AddIOp::create(builder, loc, n0, kv.loop.getStep());
    isLive = MaskTiles::emitTileIsLive(builder, loc, ranges, n0, n1);
  }
  if (!isLive) {
    scf::YieldOp::create(builder, loc, emitStep(builder));
    return loop.getResults();
  }
  auto guarded = scf::IfOp::create(builder, loc, running.getTypes(), isLive, /*withElseRegion=*/true);
  scf::YieldOp::create(builder, loc, guarded.getResults());
  builder.setInsertionPointToEnd(guarded.thenBlock());
  scf::YieldOp::create(builder, loc, emitStep(builder));
  builder.setInsertionPointToEnd(guarded.elseBlock());
  scf::YieldOp::create(builder, loc, running);
  return loop.getResults();
}

/// Lets the mask of `step` keep everything where `isFull` holds, a value outside of the mask.
static void keepAllWhere(Value isFull, OnlineAttentionOp step) {
  Operation *yield = step.getMask().front().getTerminator();
  OpBuilder builder(yield);
  yield->setOperand(0, arith::OrIOp::create(builder, yield->getLoc(), isFull, yield->getOperand(0)));
}

/// Whether the tile at n0, one of [begin, end), is one of the full ones.
static Value emitIsFull(OpBuilder &builder, Location loc, const MaskTiles::Ranges &ranges, Value n0) {
  Value isBefore, isBehind;
  if (ranges.mayHaveRightPartial)
    isBefore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, n0, ranges.fullEnd);
  if (ranges.mayHaveLeftPartial)
    isBehind = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, n0, ranges.fullBegin);
  if (isBefore && isBehind)
    return arith::AndIOp::create(builder, loc, isBehind, isBefore);
  return isBefore ? isBefore : isBehind;
}

/// One loop over tiles [begin, end) of constant size, full and partial alike: the mask says for each tile whether it applies.
static ValueRange emitMixedRange(OpBuilder &builder, KVLoop kv, const MaskTiles::Ranges &ranges, Value begin, Value end,
                                 ValueRange state) {
  Location loc = kv.loop.getLoc();
  auto loop = scf::ForOp::create(builder, loc, begin, end, kv.loop.getStep(), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Value n0 = loop.getInductionVar();
  ValueRange next = emitKVStep(builder, kv.step, kv.key, kv.value, kv.origin, n0, builder.getIndexAttr(kv.blockN),
                               loop.getRegionIterArgs(), /*withMask=*/true);
  if (ranges.mayHaveFull) {
    auto step = next[0].getDefiningOp<OnlineAttentionOp>();
    builder.setInsertionPoint(step);
    keepAllWhere(emitIsFull(builder, loc, ranges, n0), step);
    builder.setInsertionPointAfter(step);
  }
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

/// Whether one loop should visit all tiles but the last: where copies of the step are long, because its regions read tensors, or
/// many, because both ends have partial tiles.
static bool prefersOneLoop(OnlineAttentionOp step, const MaskTiles::Ranges &ranges) {
  // Beyond 128 rows threads have no registers to spare for a mask that waits beside every tile.
  auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  if (schedule && schedule.getBlockM() > 128)
    return false;
  return readsTensors(step.getScore()) || readsTensors(step.getMask()) ||
         (ranges.mayHaveLeftPartial && ranges.mayHaveRightPartial);
}

/// The start of the last of the tiles that end at `end` > 0.
static Value emitLastTile(OpBuilder &builder, Location loc, Value end, int64_t blockN) {
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value size = arith::ConstantIndexOp::create(builder, loc, blockN);
  Value before = arith::SubIOp::create(builder, loc, end, one);
  Value index = arith::DivUIOp::create(builder, loc, before, size);
  return arith::MulIOp::create(builder, loc, index, size);
}

/// The three loops. With `peel`, the last tile comes first, on its own, with the mask where any tile has it; where the step is
/// long, or both ends have partial tiles, one loop then visits all the others.
///
///   if begin < end: step(last), loops over [begin, last)
static void emitRanges(OpBuilder &builder, KVLoop kv, const MaskTiles::Ranges &ranges, bool peel) {
  Location loc = kv.loop.getLoc();
  SmallVector<Value> state(kv.loop.getInitArgs());
  scf::IfOp any;
  Value last;
  bool isMasked = !kv.step.getMask().empty() && (ranges.mayHaveLeftPartial || ranges.mayHaveRightPartial);
  OpBuilder::InsertionGuard guard(builder);
  if (peel) {
    Value hasTiles = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, ranges.begin, ranges.end);
    any = scf::IfOp::create(builder, loc, ValueRange(state).getTypes(), hasTiles, /*withElseRegion=*/true);
    builder.setInsertionPointToEnd(any.elseBlock());
    scf::YieldOp::create(builder, loc, state);
    builder.setInsertionPointToEnd(any.thenBlock());
    last = emitLastTile(builder, loc, ranges.end, kv.blockN);
    OpFoldResult size = builder.getIndexAttr(kv.blockN);
    if (ranges.mayHaveLeftPartial || ranges.mayHaveRightPartial)
      size = emitTileSize(builder, loc, kv.blockN, last, kv.numKeys);
    state = SmallVector<Value>(
        emitKVStep(builder, kv.step, kv.key, kv.value, kv.origin, last, size, state, isMasked));
  }
  auto append = [&](bool exists, Value begin, Value end, bool isFull) {
    if (!exists)
      return;
    if (peel)
      end = arith::MinSIOp::create(builder, loc, end, last);
    state = SmallVector<Value>(emitRange(builder, kv, ranges, begin, end, isFull, state));
  };
  if (peel && isMasked && ranges.live.empty() && prefersOneLoop(kv.step, ranges)) {
    state = SmallVector<Value>(emitMixedRange(builder, kv, ranges, ranges.begin, last, state));
  } else {
    append(ranges.mayHaveLeftPartial, ranges.begin, ranges.fullBegin, /*isFull=*/false);
    append(ranges.mayHaveFull, ranges.fullBegin, ranges.fullEnd, /*isFull=*/true);
    // Without a mask only the last tile can be partial.
    append(ranges.mayHaveRightPartial && (isMasked || !peel), ranges.fullEnd, ranges.end, /*isFull=*/false);
  }
  if (!peel) {
    kv.loop.getResults().replaceAllUsesWith(state);
    return;
  }
  scf::YieldOp::create(builder, loc, state);
  kv.loop.getResults().replaceAllUsesWith(any.getResults());
}

/// All tiles, all of them partial: what is known of a mask that cannot be decided.
static MaskTiles::Ranges getUndecidedRanges(KVLoop kv) {
  MaskTiles::Ranges ranges;
  ranges.begin = ranges.fullBegin = ranges.fullEnd = kv.loop.getLowerBound();
  ranges.end = kv.numKeys;
  ranges.mayHaveLeftPartial = ranges.mayHaveFull = false;
  ranges.mayHaveRightPartial = true;
  return ranges;
}

static void prune(RewriterBase &rewriter, KVLoop kv, bool peel) {
  Location loc = kv.loop.getLoc();
  rewriter.setInsertionPoint(kv.loop);
  OnlineAttentionOp probe = cast<OnlineAttentionOp>(rewriter.clone(*kv.step));
  rewriter.setInsertionPoint(probe);
  shiftMask(rewriter, probe, kv.origin);
  MaskTiles tiles = MaskTiles::analyze(probe.getMask(), factOf);

  if (!kv.step.getMask().empty())
    remark::analysis(loc, remark::RemarkOpts::name("mask-tiles").category("attn"))
        << (tiles.isUndecided() ? "mask cannot be decided by tile: it is applied everywhere" : tiles.describe());
  if (tiles.isUndecided()) {
    rewriter.eraseOp(probe);
    if (peel) {
      emitRanges(rewriter, kv, getUndecidedRanges(kv), peel);
      rewriter.eraseOp(kv.loop);
    }
    return;
  }

  OpFoldResult rows = tensor::getMixedSize(rewriter, loc, kv.step.getQuery(), 0);
  if (auto slice = kv.step.getQuery().getDefiningOp<tensor::ExtractSliceOp>())
    rows = slice.getMixedSizes()[slice.getMixedSizes().size() - 2];
  ValueRange at = kv.step.getOrigin();
  Value rowEnd = arith::AddIOp::create(rewriter, loc, at[2], getValueOrCreateConstantIndexOp(rewriter, loc, rows));
  MaskTiles::Ranges ranges = tiles.emitRanges(rewriter, loc, {at[0], at[1], at[2], rowEnd, kv.numKeys}, kv.blockN);

  emitRanges(rewriter, kv, ranges, peel);
  rewriter.eraseOp(probe);
  rewriter.eraseOp(kv.loop);
}

namespace {
struct PruneMaskedTilesPass : attn::impl::PruneMaskedTilesPassBase<PruneMaskedTilesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(verifyLevel(getOperation(), Level::Online)))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineAttentionOp> steps;
    getOperation()->walk([&](OnlineAttentionOp op) { steps.push_back(op); });
    for (OnlineAttentionOp step : steps) {
      FailureOr<KVLoop> kv = matchKVLoop(rewriter, step);
      if (succeeded(kv))
        prune(rewriter, *kv, peelLastTile);
      else
        remark::missed(step.getLoc(), remark::RemarkOpts::name("mask-tiles").category("attn"))
            << "not in a loop made by attn-tile-kv-loop: no tile is pruned";
    }
  }
};
} // namespace
