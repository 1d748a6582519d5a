//===- Reserves.h - registers that a count of tiles does not see ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_RESERVES_H
#define ATTN_LIB_MACHINE_RESERVES_H

#include <cstdint>

namespace attn {

/// Registers of a thread that ptxas was seen to want besides the tiles that are counted, on
/// machines that have `otherRegisters`. The table is the smallest with which no program of the
/// acceptance list spills (decision 0085).
struct Reserves {
  /// Of the first reason: ranges with a loop each; wide sums, or what a mask reads; a function of
  /// dozens of instructions, which takes a part of a tile too.
  int64_t ranges, reads, function;
  /// Of a second one: a mask of many operations; a mask in two roles, or scores that are kept; wide
  /// sums with ranges and reads; two others.
  int64_t manyOperations, more, wideRanges, both;
  /// Operations of a mask beyond which they are some, and many.
  int64_t some, many;
};

inline constexpr Reserves kReserves = {.ranges = 30,
                                       .reads = 28,
                                       .function = 20,
                                       .manyOperations = 48,
                                       .more = 32,
                                       .wideRanges = 26,
                                       .both = 6,
                                       .some = 3,
                                       .many = 10};

} // namespace attn

#endif // ATTN_LIB_MACHINE_RESERVES_H
