//===- SetSchedule.cpp - attn-set-schedule -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Transforms/Attn/Levels.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/RegionWork.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn {
#define GEN_PASS_DEF_SETSCHEDULEPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A rule's choice and the name it goes by in the remark.
struct Choice {
  int64_t blockM, blockN;
  StringRef rule;
};
} // namespace

/// Sizes for a CPU. The transposed query (block_m x D) and a tile of probabilities (block_m x
/// block_n) are read once per few rows and should stay in the first-level cache, 32 KiB or more.
/// Pairs of bf16 halve both and make packing the values, once per tile, worth amortising over more
/// rows.
static Choice chooseForCPU(AttentionOp op, int64_t lanes, bool bf16Dot) {
  Type element = op.getQuery().getType().getElementType();
  if (element.isBF16() && bf16Dot)
    return {128, 64, "cpu-bf16-pairs"};
  // Sixteen registers of 8 lanes hold 6 x 2 accumulators; 48 and 96 divide evenly by them.
  if (lanes == 8)
    return {48, 96, "cpu-8-lanes"};
  return {64, 64, "cpu-f32"};
}

/// Sizes for Hopper: a warpgroup for each 64 rows. Keys so that the query, two stages of keys and
/// two of values fit 227 KiB, and scores, weights, accumulator and what the regions compute fit the
/// registers: 240 in each thread of two warpgroups, 160 of three. Measured on an H200
/// (bench/NOTES.md); where a mask cuts tiles, narrow ones waste less. Keys are split where rows are
/// few: three warpgroups would mostly compute rows that do not exist.
static Choice chooseForCUDA(AttentionOp op, int64_t splits) {
  int64_t d = std::max(op.getHeadDim(), op.getValueDim());
  bool isMasked = !op.getMask().empty();
  RegionWork work = measureRegions(op);
  int64_t step = getGPUKeyStep(op.getHeadDim(), op.getValueDim());
  // The most that regions may do beside tiles of so many keys without spills, as 900 random
  // attentions tell (one spills, 4 bytes).
  auto narrowFor = [&](int64_t keys, int64_t mostWork) -> int64_t {
    int64_t excess = std::clamp<int64_t>(work.weight - mostWork, 0, 12);
    return llvm::alignDown(keys - 16 * llvm::divideCeil(excess, 6), step);
  };
  if (d <= 64 && !work.gathers && splits == 1)
    return {192,
            narrowFor(work.isLong                               ? 96
                      : readsTensors(op.getScore()) && isMasked ? 112
                                                                : 128,
                      9),
            "cuda-d64"};
  if (d <= 128)
    return {128, narrowFor(work.isLong ? 112 : 128, 17), "cuda-d128"};
  bool isHeavy = work.isLong || work.gathers;
  if (d <= 192)
    return {128, isHeavy ? narrowFor(64, 21) : narrowFor(96, 9), "cuda-d192"};
  return {128,
          isHeavy    ? narrowFor(48, 21)
          : isMasked ? narrowFor(64, 7)
                     : narrowFor(80, 15),
          "cuda-d256"};
}

namespace {
struct SetSchedulePass : attn::impl::SetSchedulePassBase<SetSchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(verifyLevel(getOperation(), Level::Problem)))
      return signalPassFailure();
    if (target != "cpu" && target != "cuda") {
      getOperation()->emitError("expected target cpu or cuda, got '") << target << "'";
      return signalPassFailure();
    }
    int64_t most = int64_t(1) << 30;
    if (blockM < 0 || blockN < 0 || splits < 1 || blockM > most || blockN > most || splits > most) {
      getOperation()->emitError(
          "expected block-m and block-n from 0 to 2^30 and splits from 1 to 2^30, got ")
          << blockM.getValue() << ", " << blockN.getValue() << " and " << splits.getValue();
      return signalPassFailure();
    }
    getOperation()->walk([&](AttentionOp op) {
      if (op->hasAttr(kScheduleAttrName))
        return;
      Choice choice =
          target == "cuda" ? chooseForCUDA(op, splits) : chooseForCPU(op, lanes, bf16Dot);
      int64_t m = blockM ? int64_t(blockM) : choice.blockM,
              n = blockN ? int64_t(blockN) : choice.blockN;
      op->setAttr(kScheduleAttrName, ScheduleAttr::get(&getContext(), m, n, splits));
      remark::passed(op.getLoc(), remark::RemarkOpts::name("schedule").category("attn"))
          << llvm::formatv("rule {0} chose block_m {1}, block_n {2}, splits {3}",
                           blockM || blockN ? StringRef("options") : choice.rule, m, n,
                           splits.getValue())
                 .str();
    });
  }
};
} // namespace
