//===- GlobalMemory.h - elements of a kernel's arguments --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_GLOBALMEMORY_H
#define ATTN_LIB_SIMULATOR_GLOBALMEMORY_H

#include "lib/Simulator/Simulator.h"

namespace attn::sim {

/// `count` neighbours along the last dimension, from the element at `offset` on. Memory without
/// data reads as NaN and 0, and drops writes.
void readNumbers(const Memory &memory, int64_t offset, int64_t stride, int64_t count, float *to);
void writeNumbers(const Memory &memory, int64_t offset, int64_t stride, int64_t count,
                  const float *from);
void addNumbers(const Memory &memory, int64_t offset, int64_t stride, int64_t count,
                const float *what);
/// One element: floats of every type as doubles, integers sign-extended, i1 as 0 and -1.
Lane readLane(const Memory &memory, int64_t offset);
void writeLane(const Memory &memory, int64_t offset, Lane value);

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_GLOBALMEMORY_H
