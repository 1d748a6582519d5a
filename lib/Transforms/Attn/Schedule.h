//===- Schedule.h - finding the schedule of an op ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H
#define ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H

#include "dialects/Attn/IR/AttnDialect.h"
#include "mlir/IR/Operation.h"
#include <algorithm>

namespace attn {

/// The discardable attribute that carries an op's #attn.schedule through the rooms.
inline constexpr llvm::StringLiteral kScheduleAttrName = "attn.schedule";

/// The op's schedule, or an error that names the pass that attaches it.
inline mlir::FailureOr<ScheduleAttr> getSchedule(mlir::Operation *op) {
  if (auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName))
    return schedule;
  return op->emitOpError("expected a '")
         << kScheduleAttrName << "' attribute (attn-set-schedule attaches one)";
}

/// What block_n is a multiple of on a GPU: sums take 16 keys at a time, and stages in shared
/// memory, where a row takes 32 bytes or more, are multiples of 1024.
inline int64_t getGPUKeyStep(int64_t headDim, int64_t valueDim) {
  return std::min(headDim, valueDim) <= 16 ? 32 : 16;
}

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H
