//===- Pages.h - how rows of pages come to shared memory -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_PAGES_H
#define ATTN_LIB_MACHINE_PAGES_H

#include "lib/Machine/Lanes.h"
#include "lib/Machine/Machine.h"
#include "lib/Machine/Swizzle.h"

namespace attn {

/// Whether the rows of a page are copied as boxes, which hold as many as a product sums over at a
/// time. Threads gather the rows of other pages.
inline bool copiesPagesAsBoxes(const Machine &machine, int64_t pageRows, int64_t elementBytes) {
  return pageRows % (machine.product.sumBytes / elementBytes) == 0;
}

/// Whether threads can gather rows into a tile: in pieces of 16 bytes, of which a row of the tile
/// has at most as many as a warp has lanes.
inline bool canGatherRows(int64_t rowBytes, int64_t tileRowBytes) {
  return rowBytes % kChunkBytes == 0 && tileRowBytes <= kLanes * kChunkBytes;
}

} // namespace attn

#endif // ATTN_LIB_MACHINE_PAGES_H
