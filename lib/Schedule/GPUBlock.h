//===- GPUBlock.h - what a block of attention takes of a GPU ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Arithmetic on sizes, without IR: what rooms 5 to 7 will ask of the machine, known in room 1.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_GPUBLOCK_H
#define ATTN_LIB_SCHEDULE_GPUBLOCK_H

#include "lib/Machine/Machine.h"
#include "lib/Schedule/Schedule.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace attn {

/// How products take an element: as a factor of so many bytes or, of f32, as three of them
/// (tile-split-products).
struct Factors {
  int64_t bytes = 2, parts = 1;

  /// Of two elements: those of three parts that are more than the last bit.
  int64_t countProducts() const { return parts > 1 ? 6 : 1; }
};

/// Of an element of so many bits.
inline Factors getFactors(int64_t bits) {
  return bits > 16 ? Factors{.bytes = 2, .parts = 3} : Factors{.bytes = bits / 8, .parts = 1};
}

/// Whether the products of a tile have a sum of their own, which is added to that of all tiles:
/// those of parts, up to the columns of which registers hold both (tile-split-products).
inline bool addsTiles(const Machine &machine, int64_t parts, int64_t columns) {
  return parts > 1 && columns <= 2 * machine.getWarpgroupRows();
}

/// A block of attention: D and Dv, the bytes of a factor, what it follows, and the factors of an
/// element.
struct GPUBlock {
  int64_t headDim, valueDim, elementBytes;
  Schedule schedule;
  int64_t parts = 1;
};

/// Bytes of a shared tile, as tile-promote-operands makes it: the widest swizzle whose slab the
/// rows fill. Columns that are summed over fill whole products.
int64_t getTileBytes(const Machine &machine, int64_t rows, int64_t rowBytes, bool isSummed);

/// block_n is a multiple of this: of the rows that one product sums over, and of the rows that fill
/// whole stages.
int64_t getKeyStep(const Machine &machine, int64_t headDim, int64_t valueDim,
                   int64_t elementBytes = 2);

/// The shared memory that room 6 will allocate: the query, the rings of keys and values, and their
/// barriers. Where one tensor is both keys and values, less may do; where a mask leaves values
/// unread, room 6 adds marks of what is read, which it still refuses by itself.
int64_t getSharedBytes(const Machine &machine, const GPUBlock &block);

/// Why `size` is no multiple of `step` up to `most`, with the nearest that is one; empty if it is.
std::string refuseSize(const Machine &machine, llvm::StringRef what, int64_t size, int64_t step,
                       int64_t most, llvm::StringRef condition = "");

/// Why the machine has no such block, with the nearest that it has: "expected X, got Y; the nearest
/// is Z". Empty if it has.
std::string refuseBlock(const Machine &machine, const GPUBlock &block);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_GPUBLOCK_H
