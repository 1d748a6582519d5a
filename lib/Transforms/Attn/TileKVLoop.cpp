//===- TileKVLoop.cpp - attn-tile-kv-loop ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {
#define GEN_PASS_DEF_TILEKVLOOPPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static LogicalResult tileLoop(RewriterBase &rewriter, AbsorbingOpInterface op) {
  FailureOr<ScheduleAttr> schedule = getSchedule(op);
  if (failed(schedule))
    return failure();
  Location loc = op.getLoc();
  bool rowsRun = op.getRunningPosition() == 2;
  int64_t tileSize = rowsRun ? (*schedule)->blockM : (*schedule)->blockN;
  rewriter.setInsertionPoint(op);
  SmallVector<Value> sources =
      llvm::map_to_vector(op.getRunningMutable(), [](OpOperand *tile) { return tile->get(); });
  OpFoldResult n = getRows(rewriter, loc, sources[0]);
  Value end = getValueOrCreateConstantIndexOp(rewriter, loc, n);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value step = arith::ConstantIndexOp::create(rewriter, loc, tileSize);
  ValueRange state = cast<DestinationStyleOpInterface>(op.getOperation()).getDpsInits();
  auto loop = scf::ForOp::create(rewriter, loc, zero, end, step, state);
  rewriter.setInsertionPointToEnd(loop.getBody());
  Value n0 = loop.getInductionVar();
  SmallVector<OpFoldResult> origin = getOriginOrZeros(op.getOrigin(), rewriter.getContext());
  OpFoldResult size = emitTileSize(rewriter, loc, tileSize, n0, n);
  scf::YieldOp::create(rewriter, loc,
                       emitTileStep(rewriter, op, sources, origin[op.getRunningPosition()], n0,
                                    size, loop.getRegionIterArgs(), /*withMask=*/true));
  rewriter.replaceOp(op, loop.getResults());
  return success();
}

namespace {
struct TileKVLoopPass
    : RoomPass<attn::impl::TileKVLoopPassBase<TileKVLoopPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AbsorbingOpInterface> ops;
    getOperation()->walk([&](AbsorbingOpInterface op) { ops.push_back(op); });
    for (AbsorbingOpInterface op : ops)
      if (failed(tileLoop(rewriter, op)))
        return failure();
    return success();
  }
};
} // namespace
