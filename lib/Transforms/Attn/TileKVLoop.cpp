//===- TileKVLoop.cpp - attn-tile-kv-loop ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/KVStep.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_TILEKVLOOPPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static LogicalResult tileKVLoop(RewriterBase &rewriter, OnlineAttentionOp op) {
  FailureOr<ScheduleAttr> schedule = getSchedule(op);
  if (failed(schedule))
    return failure();
  Location loc = op.getLoc();
  int64_t blockN = schedule->getBlockN();
  rewriter.setInsertionPoint(op);
  OpFoldResult n = tensor::getMixedSize(rewriter, loc, op.getKey(), 0);
  if (auto slice = op.getKey().getDefiningOp<tensor::ExtractSliceOp>())
    n = slice.getMixedSizes()[slice.getMixedSizes().size() - 2];
  Value end = getValueOrCreateConstantIndexOp(rewriter, loc, n);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value step = arith::ConstantIndexOp::create(rewriter, loc, blockN);
  auto loop = scf::ForOp::create(rewriter, loc, zero, end, step, op.getDpsInits());
  rewriter.setInsertionPointToEnd(loop.getBody());
  Value n0 = loop.getInductionVar();
  OpFoldResult size = emitTileSize(rewriter, loc, blockN, n0, n);
  scf::YieldOp::create(rewriter, loc,
                       emitKVStep(rewriter, op, op.getKey(), op.getValue(), op.getMixedOrigin()[3],
                                  n0, size, loop.getRegionIterArgs(), /*withMask=*/true));
  rewriter.replaceOp(op, loop.getResults());
  return success();
}

namespace {
struct TileKVLoopPass
    : RoomPass<attn::impl::TileKVLoopPassBase<TileKVLoopPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineAttentionOp> ops;
    getOperation()->walk([&](OnlineAttentionOp op) { ops.push_back(op); });
    for (OnlineAttentionOp op : ops)
      if (failed(tileKVLoop(rewriter, op)))
        return failure();
    return success();
  }
};
} // namespace
