//===- Schedule.h - finding the schedule of an op ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H
#define ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H

#include "dialects/Attn/IR/AttnDialect.h"
#include "lib/Transforms/Attn/GPUBlock.h"
#include "lib/Transforms/Attn/GradBlock.h"
#include "mlir/IR/Operation.h"

namespace attn {

/// Parts that fill a device have at least so many tiles of keys, or there is one.
inline constexpr int64_t kLeastTilesOfParts = 4;

/// The op's schedule, or an error that names the pass that attaches it.
inline mlir::FailureOr<ScheduleAttr> getSchedule(mlir::Operation *op) {
  if (auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName))
    return schedule;
  return op->emitOpError("expected a '")
         << kScheduleAttrName << "' attribute (attn-set-schedule attaches one)";
}

/// The block of an attention that follows a schedule.
inline GPUBlock getGPUBlock(int64_t headDim, int64_t valueDim, mlir::Type element,
                            ScheduleAttr schedule) {
  return {headDim, valueDim, element.getIntOrFloatBitWidth() / 8, schedule.getWords()};
}

/// Whether two sums of a block that owns so many keys are the business of two roles, each with all
/// of them: the schedule has twice the consumers that they need.
inline bool dividesSums(const Machine &machine, ScheduleAttr schedule, int64_t owned) {
  return schedule->consumers * machine.productRows == 2 * owned;
}

/// The block of one pass of gradients with the numbers of a schedule.
inline GradBlock withSchedule(const Machine &machine, GradBlock block, ScheduleAttr schedule) {
  block.owned = block.rowsRun ? schedule->blockN : schedule->blockM;
  block.running = block.rowsRun ? schedule->blockM : schedule->blockN;
  block.stages = schedule->stages;
  block.dividesSums = block.rowsRun && dividesSums(machine, schedule, block.owned);
  return block;
}

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H
