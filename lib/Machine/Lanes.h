//===- Lanes.h - how lanes access rows of memory --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_LANES_H
#define ATTN_LIB_MACHINE_LANES_H

#include <cstdint>

namespace attn {

/// The threads of a warp, and the most of a block.
inline constexpr int64_t kLanes = 32, kBlockThreads = 1024;
/// The piece of a product's result that a warp has: its rows, a group of its columns, and the lanes
/// that share a row.
inline constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8, kQuad = 4;

/// How the lanes of a warp lie along rows of so many columns where no product asks for another
/// layout. As many lanes as divide a row lie next to each other. Each lane has 16 bytes of f32, or
/// 8 bytes where fewer than four lanes would have 16, so that together they access whole sectors of
/// 32 bytes.
struct LanesAlongRows {
  int64_t vector, lanes;
  /// One for each of so many warps and their lanes that are not side by side.
  int64_t rows;
};
LanesAlongRows getLanesAlongRows(int64_t columns, int64_t warps);

} // namespace attn

#endif // ATTN_LIB_MACHINE_LANES_H
