//===- TensorMaps.h - tensor maps of launch arguments -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_TENSORMAPS_H
#define ATTN_LIB_RUNTIME_TENSORMAPS_H

#include "attn/Runtime.h"
#include "lib/Plan/KernelPlan.h"
#include "lib/Runtime/Driver.h"

namespace attn {

/// Makes the tensor maps of one kernel parameter.
///
/// Encoding takes the driver about 0.3 us, and a program calls with the same few tensors over and
/// over: each thread remembers the last maps it made. A map holds an address and no claim on it, so
/// an entry never goes stale; at worst it is not asked for again.
class TensorMapEncoder {
public:
  /// A plan with a map that no tensor could satisfy is an InvalidKernel. `argument` is for
  /// messages.
  static Result<TensorMapEncoder> create(const TensorMap &map, unsigned argument);

  /// Errors are InvalidArgument, with the numbers found and those that would do.
  ///
  /// A tensor without elements has no address that could be encoded, yet the kernel may still have
  /// to run (no keys: the output is zero). Its map then shows one element at `anyAddress`, memory
  /// that exists and that the kernel, whose loops end before the first copy, does not read.
  Status encode(const Driver &driver, const TensorView &tensor, void *anyAddress,
                cuda::TensorMapObject &map) const;

private:
  TensorMapEncoder() = default;

  /// The values that a map depends on besides the encoder, in the order of `dims`; strides are in
  /// elements, and 0 where the size is 1. Unused dimensions are 0.
  struct Key {
    uint64_t encoder;
    void *data;
    std::array<int64_t, 5> sizes, strides;
    bool operator==(const Key &) const = default;
  };
  struct Slot;
  static Slot &findSlot(const Key &key);
  Status encodeKey(const Driver &driver, const Key &key, cuda::TensorMapObject &map) const;
  Status checkStride(int64_t stride, unsigned position) const;

  /// Unlike an address, never used twice in a process.
  uint64_t id = 0;
  unsigned argument = 0;
  unsigned rank = 0;
  DataType type = DataType::F32;
  std::array<uint8_t, 5> dims = {};
  std::array<uint32_t, 5> box = {};
  cuda::TensorMapSwizzle swizzle = cuda::SwizzleNone;
};

/// The stride of a dimension in elements, also of a tensor without strides. `dim` < rank.
inline int64_t getStride(const TensorView &tensor, int dim) {
  if (tensor.strides)
    return tensor.strides[dim];
  int64_t stride = 1;
  for (int inner = tensor.rank - 1; inner > dim; --inner)
    stride *= tensor.shape[inner];
  return stride;
}

/// Whether some extent is 0.
inline bool isEmpty(const TensorView &tensor) {
  for (int dim = 0; dim < tensor.rank; ++dim)
    if (tensor.shape[dim] == 0)
      return true;
  return false;
}

} // namespace attn

#endif // ATTN_LIB_RUNTIME_TENSORMAPS_H
