//===- GradSchedule.h - schedules of gradients on a GPU ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_GRADSCHEDULE_H
#define ATTN_LIB_TRANSFORMS_ATTN_GRADSCHEDULE_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Transforms/Attn/CandidateRegisters.h"
#include "lib/Transforms/Attn/ScheduleRule.h"

namespace attn {

/// Sizes for one pass of gradients, or for the sums by rows, which need no `registers`.
Choice chooseGradForCUDA(mlir::Operation *op, const Machine &machine,
                         CandidateRegisters *registers);

/// Why the machine has no such block for the pass, with the nearest; empty if it has.
std::string refuseGradSchedule(const Machine &machine, ScoredOpInterface op, ScheduleAttr schedule);

/// Makes two passes of one over rows whose sums for keys and values do not fit a thread together,
/// unless two roles can share them out.
void splitSums(AttentionGradKeyValueOp op, const Machine &machine, CandidateRegisters &registers);

/// The words of a pass over keys, which has a schedule, with up to `mostParts` of the query heads
/// that share a key head; none where that leaves no registers.
std::optional<Schedule> chooseParts(AttentionGradKeyValueOp pass, int64_t mostParts);

/// Leaves the mark of a fused form where the machine has a block for it.
void checkFused(mlir::ModuleOp module, const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_GRADSCHEDULE_H
