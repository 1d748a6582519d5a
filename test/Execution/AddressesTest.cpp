//===- AddressesTest.cpp - that reads outside of a tensor are found ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Kernels here are told of one key more than there is: what the tests of a CPU stand on.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/Invoke.h"
#include "test/Execution/AddressSanitizer.h"
#include "test/Execution/Sources.h"
#include "test/Execution/TestDevice.h"
#include "test/Unit/GuardedMemory.h"
#include "gtest/gtest.h"

namespace attn::test {
namespace {

constexpr int64_t kColumns = 16, kKeys = 24;

class AddressesTest : public testing::Test {
protected:
  void SetUp() override {
    if (getOptions().command.find("--device=cpu") == std::string::npos)
      GTEST_SKIP() << "kernels of a CPU";
    // The process has threads.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    Problem problem;
    problem.d = problem.dv = kColumns;
    module = sources.parse(makeSource(kFull, problem));
    CPUOptions options;
    options.jit.host = llvm::cantFail(getHostInfo());
    options.jit.sanitize = hasAddressSanitizer();
    kernel = llvm::cantFail(compileForCPU(*module, options));
  }

  /// One query, and keys at the address.
  void call(float *keys, int64_t numKeys) {
    std::vector<float> query(kColumns), values((kKeys + 1) * kColumns), output(kColumns);
    const int64_t strides[] = {kColumns * numKeys, kColumns * numKeys, kColumns, 1},
                  matrix[] = {1, 1, numKeys, kColumns}, row[] = {1, 1, 1, kColumns};
    KernelArguments arguments;
    arguments.addMemRef(query.data(), row, strides);
    arguments.addMemRef(keys, matrix, strides);
    arguments.addMemRef(values.data(), matrix, strides);
    arguments.addMemRef(output.data(), row, strides);
    arguments.call(kernel->function);
  }

  Sources sources;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<CompiledKernel> kernel;
};

TEST_F(AddressesTest, APageEndsAReadPastTheEnd) {
  Guarded<float> keys(kKeys * kColumns);
  std::fill(keys.begin(), keys.end(), 0.0f);
  call(keys.data(), kKeys);
  EXPECT_DEATH(call(keys.data(), kKeys + 1), "");
}

TEST_F(AddressesTest, AKernelChecksWhatItReads) {
  if (!hasAddressSanitizer())
    GTEST_SKIP() << "AddressSanitizer's runtime (run-addresses)";
  std::vector<float> keys(kKeys * kColumns);
  call(keys.data(), kKeys);
  EXPECT_DEATH(call(keys.data(), kKeys + 1), "heap-buffer-overflow");
  // Eight bytes are the least that the runtime tells apart.
  setPoisoned(keys.data() + kColumns, 2 * sizeof(float), true);
  EXPECT_DEATH(call(keys.data(), kKeys), "use-after-poison");
  setPoisoned(keys.data() + kColumns, 2 * sizeof(float), false);
}

} // namespace
} // namespace attn::test
