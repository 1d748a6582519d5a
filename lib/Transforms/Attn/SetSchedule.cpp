//===- SetSchedule.cpp - attn-set-schedule -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/ScheduleRule.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn {
#define GEN_PASS_DEF_SETSCHEDULEPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct SetSchedulePass
    : RoomPass<attn::impl::SetSchedulePassBase<SetSchedulePass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  /// Gradients have the sizes of a forward pass of their element type: rows are rows, keys are
  /// keys.
  BlockSizes choose(Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      return choose(attention);
    return chooseForCPU(lanes, /*bf16Pairs=*/false);
  }

  BlockSizes choose(AttentionOp op) {
    if (target == "cuda")
      return chooseForCUDA({op.getHeadDim(), op.getValueDim(), !op.getMask().empty(),
                            readsTensors(op.getScore()), measureRegions(op), splits});
    return chooseForCPU(lanes, bf16Dot && op.getQuery().getType().getElementType().isBF16());
  }

  LogicalResult transform() override {
    if (target != "cpu" && target != "cuda") {
      getOperation()->emitError("expected target cpu or cuda, got '") << target << "'";
      return failure();
    }
    int64_t most = int64_t(1) << 30;
    if (blockM < 0 || blockN < 0 || splits < 1 || blockM > most || blockN > most || splits > most) {
      getOperation()->emitError(
          "expected block-m and block-n from 0 to 2^30 and splits from 1 to 2^30, got ")
          << blockM.getValue() << ", " << blockN.getValue() << " and " << splits.getValue();
      return failure();
    }
    WalkResult walk = getOperation()->walk([&](Operation *op) -> WalkResult {
      if (!isa<AttentionOp, RowDeltaOp, AttentionGradQueryOp, AttentionGradKeyValueOp>(op) ||
          op->hasAttr(kScheduleAttrName))
        return WalkResult::advance();
      BlockSizes sizes = choose(op);
      int64_t m = blockM ? int64_t(blockM) : sizes.blockM,
              n = blockN ? int64_t(blockN) : sizes.blockN;
      auto schedule = ScheduleAttr::getChecked([&] { return op->emitOpError(); }, &getContext(), m,
                                               n, splits.getValue());
      if (!schedule)
        return WalkResult::interrupt();
      op->setAttr(kScheduleAttrName, schedule);
      remark::passed(op->getLoc(), remark::RemarkOpts::name("schedule").category("attn"))
          << llvm::formatv("rule {0} chose block_m {1}, block_n {2}, splits {3}",
                           blockM || blockN ? StringRef("options") : sizes.rule, m, n,
                           splits.getValue())
                 .str();
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};
} // namespace
