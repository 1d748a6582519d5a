//===- Lanes.h - how lanes access rows of memory
//-----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_LANES_H
#define ATTN_LIB_MACHINE_LANES_H

#include <cstdint>

namespace attn {

/// How the lanes of a warp lie along rows of so many columns where no product asks for another
/// layout. As many lanes as divide a row lie next to each other. Each lane has 16 bytes of f32, or
/// 8 bytes where fewer than four lanes would have 16, so that together they access whole sectors of
/// 32 bytes.
struct LanesAlongRows {
  int64_t vector, lanes;
  /// Of a warpgroup, one for each of its warps and lanes that are not side by side.
  int64_t rows;
};
LanesAlongRows getLanesAlongRows(int64_t columns);

} // namespace attn

#endif // ATTN_LIB_MACHINE_LANES_H
