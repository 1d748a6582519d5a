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

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SCHEDULE_H
