//===- Pages.h - how rows of pages come to shared memory -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_PAGES_H
#define ATTN_LIB_MACHINE_PAGES_H

#include "lib/Machine/Machine.h"

namespace attn {

/// Whether the rows of a page are copied as boxes, which hold as many as a product sums over at a
/// time. Threads gather the rows of other pages.
inline bool copiesPagesAsBoxes(const Machine &machine, int64_t pageRows, int64_t elementBytes) {
  return pageRows % (machine.product.sumBytes / elementBytes) == 0;
}

} // namespace attn

#endif // ATTN_LIB_MACHINE_PAGES_H
