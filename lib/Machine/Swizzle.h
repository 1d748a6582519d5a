//===- Swizzle.h - how matrices lie in shared memory -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The forms of !tile.shared, which all machines that there are read without conflicts of banks.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_SWIZZLE_H
#define ATTN_LIB_MACHINE_SWIZZLE_H

#include <cstdint>

namespace attn {

/// Bytes of a slab's rows, the widest first. The chunks of a row are permuted by its number.
inline constexpr int64_t kSwizzles[] = {128, 64, 32};
inline constexpr int64_t kWidestSwizzle = kSwizzles[0];
/// Bytes that lie together, and rows after which the permutation repeats.
inline constexpr int64_t kChunkBytes = 16, kSwizzleRows = 8;
/// Where a matrix may begin: the period of the widest swizzle.
inline constexpr int64_t kPlaceBytes = kWidestSwizzle * kSwizzleRows;
/// Where a row of numbers may begin, which has no swizzle: as far as copies are aligned.
inline constexpr int64_t kRowBytes = 128;

constexpr bool isSwizzle(int64_t bytes) {
  for (int64_t swizzle : kSwizzles)
    if (swizzle == bytes)
      return true;
  return false;
}

/// The widest swizzle whose slab is no wider than a row of so many bytes, or else the narrowest.
constexpr int64_t getSwizzleWithin(int64_t rowBytes) {
  for (int64_t swizzle : kSwizzles)
    if (swizzle <= rowBytes)
      return swizzle;
  return kSwizzles[2];
}

/// The widest swizzle whose slabs rows of so many bytes fill, or else the narrowest.
constexpr int64_t getFilledSwizzle(int64_t rowBytes) {
  for (int64_t swizzle : kSwizzles)
    if (rowBytes % swizzle == 0)
      return swizzle;
  return kSwizzles[2];
}

} // namespace attn

#endif // ATTN_LIB_MACHINE_SWIZZLE_H
