//===- PruneMaskedTiles.cpp - attn-prune-masked-tiles ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/KVRanges.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_PRUNEMASKEDTILESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

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
  if (auto assume = tensor.getDefiningOp<AssumeOp>();
      assume && assume.getFact() == Fact::NonDecreasing)
    return TensorFact::NonDecreasing;
  return std::nullopt;
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

static void prune(RewriterBase &rewriter, KVLoop kv, bool certain) {
  Location loc = kv.loop.getLoc();
  rewriter.setInsertionPoint(kv.loop);
  OnlineAttentionOp probe = cast<OnlineAttentionOp>(rewriter.clone(*kv.step));
  rewriter.setInsertionPoint(probe);
  shiftMask(rewriter, probe, kv.origin);
  MaskTiles tiles = MaskTiles::analyze(probe.getMask(), factOf);

  if (!kv.step.getMask().empty())
    remark::analysis(loc, remark::RemarkOpts::name("mask-tiles").category("attn"))
        << (tiles.isUndecided() ? "mask cannot be decided by tile: it is applied everywhere"
                                : tiles.describe());
  if (tiles.isUndecided()) {
    rewriter.eraseOp(probe);
    if (certain) {
      emitKVRanges(rewriter, kv, getUndecidedRanges(kv), certain);
      rewriter.eraseOp(kv.loop);
    }
    return;
  }

  OpFoldResult rows = tensor::getMixedSize(rewriter, loc, kv.step.getQuery(), 0);
  if (auto slice = kv.step.getQuery().getDefiningOp<tensor::ExtractSliceOp>())
    rows = slice.getMixedSizes()[slice.getMixedSizes().size() - 2];
  ValueRange at = kv.step.getOrigin();
  Value rowEnd = arith::AddIOp::create(rewriter, loc, at[2],
                                       getValueOrCreateConstantIndexOp(rewriter, loc, rows));
  MaskBlock block = {at[0], at[1], at[2], rowEnd, kv.numKeys};
  MaskTiles::Ranges ranges = tiles.emitRanges(rewriter, loc, block, kv.blockN);
  // Such a target multiplies whole tiles, zeros with what dropped keys hold, which may be anything:
  // those behind the last that a row keeps are in no tile.
  if (certain && !tiles.isAlwaysFull())
    kv.numKeys = tiles.emitRanges(rewriter, loc, block, /*tileSize=*/1).end;

  emitKVRanges(rewriter, kv, ranges, certain);
  rewriter.eraseOp(probe);
  rewriter.eraseOp(kv.loop);
}

namespace {
struct PruneMaskedTilesPass : RoomPass<attn::impl::PruneMaskedTilesPassBase<PruneMaskedTilesPass>,
                                       Room::Online, Room::Online> {
  using RoomPass::RoomPass;

  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineAttentionOp> steps;
    getOperation()->walk([&](OnlineAttentionOp op) { steps.push_back(op); });
    for (OnlineAttentionOp step : steps) {
      FailureOr<KVLoop> kv = matchKVLoop(rewriter, step);
      if (succeeded(kv))
        prune(rewriter, *kv, certainFirst);
      else
        remark::missed(step.getLoc(), remark::RemarkOpts::name("mask-tiles").category("attn"))
            << "not in a loop made by attn-tile-kv-loop: no tile is pruned";
    }
    return success();
  }
};
} // namespace
