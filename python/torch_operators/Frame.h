//===- Frame.h - the tensors of one call ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TORCH_OPERATORS_FRAME_H
#define ATTN_TORCH_OPERATORS_FRAME_H

#include "attn-c/attn.h"
#include <array>
#include <string>
#include <torch/csrc/stable/tensor.h>
#include <vector>

namespace attn_torch {
/// PyTorch's number of the GPU that a tensor is on; -1 on the CPU.
int32_t findDevice(const torch::stable::Tensor &x);

/// A new row-major tensor on a device.
torch::stable::Tensor makeEmpty(const int64_t *shape, size_t rank,
                                torch::headeronly::ScalarType type, int32_t device);

/// The tensors of one call, in memory that the frame owns. All are on one device.
class Frame {
public:
  Frame(size_t count, int32_t device) : device(device), tensors(count), extents(count) {}

  /// `isSwapped` for a matrix of (B, S, H, D).
  void add(const char *name, const torch::stable::Tensor &x, bool isSwapped = false);
  /// A number in host memory, which outlives the frame.
  void addScale(float *scale);
  /// On PyTorch's current stream of a GPU, or by as many threads as it uses on the CPU.
  void run(const attn_kernel *kernel);

private:
  attn_tensor &take(int32_t rank);

  int32_t device;
  size_t size = 0;
  std::vector<attn_tensor> tensors;
  /// Shape and strides.
  std::vector<std::array<int64_t, 16>> extents;
};
} // namespace attn_torch

#endif // ATTN_TORCH_OPERATORS_FRAME_H
