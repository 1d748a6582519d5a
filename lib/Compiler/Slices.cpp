//===- Slices.cpp - calls with more batches than a grid can have ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Function.h"
#include "lib/Plan/DataTypes.h"
#include "lib/Runtime/TensorMaps.h"

using namespace llvm;

namespace attn {

namespace {
/// The part of a tensor with some of its batches.
struct Slice {
  Slice(const TensorView &tensor, unsigned dim, int64_t first, int64_t count)
      : shape(tensor.shape, tensor.shape + tensor.rank) {
    for (int i = 0; i < tensor.rank; ++i)
      strides.push_back(getStride(tensor, i));
    shape[dim] = count;
    data = static_cast<char *>(tensor.data) + first * strides[dim] * getByteSize(tensor.type);
  }

  void *data;
  SmallVector<int64_t, 8> shape, strides;
};
} // namespace

Status runInSlices(const CallRules &rules, LaunchArguments arguments,
                   function_ref<Status(LaunchArguments)> run) {
  int64_t total = 0;
  if (!rules.batches.empty()) {
    auto [value, dim] = rules.batches.front();
    total = arguments[value].getTensor().shape[dim];
  }
  if (total <= rules.maxBatches || rules.maxBatches < 1)
    return run(arguments);
  for (int64_t first = 0; first < total; first += rules.maxBatches) {
    int64_t count = std::min(rules.maxBatches, total - first);
    SmallVector<LaunchArgument, 16> some(&arguments[0], &arguments[0] + arguments.size());
    SmallVector<Slice, 8> slices;
    slices.reserve(rules.batches.size());
    for (auto [value, dim] : rules.batches) {
      TensorView view = arguments[value].getTensor();
      const Slice &slice = slices.emplace_back(view, dim, first, count);
      some[value] =
          TensorView{slice.data, view.type, view.rank, slice.shape.data(), slice.strides.data()};
    }
    Status status = run(std::span<const LaunchArgument>(some.data(), some.size()));
    if (!status.ok())
      return status;
  }
  return {};
}

} // namespace attn
