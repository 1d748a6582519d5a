//===- SpecCall.h - calls of an AttentionSpec -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_SPECCALL_H
#define ATTN_TEST_UNIT_SPECCALL_H

#include "attn/Compiler.h"
#include "gtest/gtest.h"

namespace attn::test {

inline TensorView makeView(void *data, DataType type, const std::vector<int64_t> &shape) {
  return {data, type, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
}

/// A dense tensor of f32.
struct Floats {
  explicit Floats(std::vector<int64_t> extents) : shape(std::move(extents)) {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    data.resize(count);
  }
  TensorView view() { return makeView(data.data(), DataType::F32, shape); }

  std::vector<int64_t> shape;
  std::vector<float> data;
};

/// Compiles a spec, or its gradients, and calls it with what both take and with what one has alone.
inline void callSpec(AttentionSpec spec, bool isGradient, std::vector<LaunchArgument> arguments,
                     const std::vector<Floats *> &more) {
  spec.isGradient = isGradient;
  Result<CompiledFunction> function = compile(spec);
  ASSERT_TRUE(bool(function)) << function.getStatus().str() << getSource(spec);
  for (Floats *floats : more)
    arguments.emplace_back(floats->view());
  Status status = function->run(arguments);
  ASSERT_TRUE(status.ok()) << status.str();
}

} // namespace attn::test

#endif // ATTN_TEST_UNIT_SPECCALL_H
