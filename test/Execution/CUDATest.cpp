//===- CUDATest.cpp - what only GPUs can be asked ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace attn::test {

/// Four tensors of 2^31 elements and what lies around them.
static constexpr int64_t kFarBytes = int64_t(20) << 30;

struct CUDATest : testing::Test {
  void SetUp() override {
    if (!llvm::StringRef(getOptions().command).starts_with("--device=cuda") || countGPUs() == 0)
      GTEST_SKIP() << "expected --device=cuda and a GPU";
  }
};

TEST_F(CUDATest, TensorsBeyond2To31Elements) {
  if (int64_t bytes = getFreeGPUMemory(); bytes < kFarBytes)
    GTEST_SKIP() << llvm::formatv("expected {0} bytes of free memory on the GPU, got {1}",
                                  kFarBytes, bytes)
                        .str();
  for (const char *type : {"bf16", "f16"})
    for (int64_t splits : {1, 3}) {
      Problem problem;
      problem.type = type;
      problem.splits = splits;
      problem.d = splits == 1 ? 64 : 72;
      problem.dv = splits == 1 ? 128 : 40;
      problem.withLse = true;
      problem.memory = Memory::Far;
      // Each tensor stretches a dimension of its own; one head or batch leaves the others.
      Execution().check(kCausal, problem,
                        {{130, 200, 2, 4, 2}, {200, 130, 1, 3, 3}, {257, 257, 1, 1, 1}});
    }
}

TEST_F(CUDATest, GPUThatIsNotCurrent) {
  if (countGPUs() < 2)
    GTEST_SKIP() << "expected two GPUs";
  for (int64_t splits : {1, 3}) {
    Problem problem;
    problem.type = "bf16";
    problem.splits = splits;
    problem.withLse = true;
    problem.gpu = 1;
    Execution().check(kCausal, problem,
                      {{129, 127}, {127, 257}, {5, 300}, {64, 64}, {1, 1}, {33, 100}});
  }
}

} // namespace attn::test
