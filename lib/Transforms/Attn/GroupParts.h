//===- GroupParts.h - query heads of a group in parts -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_GROUPPARTS_H
#define ATTN_LIB_TRANSFORMS_ATTN_GROUPPARTS_H

#include "dialects/Attn/IR/AttnDialect.h"

namespace attn {

/// The most parts that the query heads of a group are split into.
inline constexpr int64_t kMostGroupParts = 32;

/// Keys of what counts as one block where parts are to fill the device. Under a mask a block with
/// much work and one with little share a multiprocessor, so that two blocks count as one.
inline int64_t countKeysOfUnit(ScheduleAttr schedule, bool isMasked) {
  return schedule->blockN * (isMasked ? 2 : 1);
}

/// The same for the question whether a call has few blocks. Under a mask those of up to three or
/// four for each multiprocessor end apart if they start head by head. Starting those with the most
/// work first was measured to be 1.08 to 1.12 times as fast with two, and 0.94 to 1.05 with four
/// (bench/NOTES.md).
inline int64_t countKeysOfFew(ScheduleAttr schedule, bool isMasked) {
  return schedule->blockN * (isMasked ? 4 : 1);
}

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_GROUPPARTS_H
