//===- LaunchScratchTest.cpp - memory that kernels of a launch share --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/LaunchFixture.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

TEST_F(LaunchTest, ScratchIsInTheOrderOfTheStream) {
  Result<Kernel> kernel = Kernel::load(makeImage(makeSplitPlans()));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  fake->capture = cuda::CaptureActive;
  fake->parameterSizes = {8, 8, 8, 8, 8};
  fake->calls.clear();
  auto *stream = reinterpret_cast<cuda::Stream>(0x77);
  Status status = kernel->launch({query, key, output, 1.0}, stream);
  ASSERT_TRUE(status.ok()) << status.str();
  std::vector<std::string> calls(fake->calls.begin() + 4, fake->calls.end());
  EXPECT_EQ(calls, std::vector<std::string>({"MemAllocAsync", "TensorMapEncodeTiled",
                                             "TensorMapEncodeTiled", "LaunchKernelEx",
                                             "LaunchKernelEx", "MemFreeAsync", "CtxPopCurrent"}));
  constexpr size_t rows = 2 * 2 * 8 * 1000, partialBytes = rows * 128 * 4;
  EXPECT_EQ(fake->scratchBytes, partialBytes + rows * 4);
  EXPECT_EQ(fake->scratchStream, stream);
  ASSERT_EQ(fake->launches.size(), 2u);
  const std::vector<std::string> &merge = fake->launches[1].parameters;
  EXPECT_EQ(as<uint64_t>(merge[0]), 0x300000u);
  EXPECT_EQ(as<uint64_t>(merge[1]), FakeCuda::scratchAddress);
  EXPECT_EQ(as<int64_t>(merge[2]), int64_t(rows / 2 * 128));
  EXPECT_EQ(as<uint64_t>(merge[3]), FakeCuda::scratchAddress + partialBytes);
  EXPECT_EQ(as<int64_t>(merge[4]), int64_t(rows / 2));
}

// What starts as zeros lies together, so that one call fills it, in the order of the stream.
TEST_F(LaunchTest, ZeroedScratch) {
  std::vector<KernelPlan> plans = makeSplitPlans();
  plans[0].scratch[1].isZero = true;
  plans[0].scratch.push_back({6, "i32", {{SizeFactor::kMultiprocessors, 2, 1}}, true});
  Result<Kernel> kernel = Kernel::load(makeImage(plans));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  fake->parameterSizes = {8, 8, 8, 8, 8};
  fake->calls.clear();
  auto *stream = reinterpret_cast<cuda::Stream>(0x77);
  Status status = kernel->launch({query, key, output, 1.0}, stream);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_LT(llvm::find(fake->calls, "MemsetD8Async"), llvm::find(fake->calls, "LaunchKernelEx"));
  constexpr size_t rows = 2 * 2 * 8 * 1000, counters = 1280;
  ASSERT_EQ(fake->fills.size(), 1u);
  EXPECT_EQ(fake->fills[0].to, FakeCuda::scratchAddress);
  EXPECT_EQ(fake->fills[0].bytes, rows * 4 + counters);
  EXPECT_EQ(fake->fills[0].stream, stream);
  EXPECT_EQ(fake->scratchBytes, rows * 4 + counters + rows * 128 * 4);
  const std::vector<std::string> &merge = fake->launches[1].parameters;
  EXPECT_EQ(as<uint64_t>(merge[1]), FakeCuda::scratchAddress + rows * 4 + counters);
  EXPECT_EQ(as<uint64_t>(merge[3]), FakeCuda::scratchAddress);
  fake->launches.clear();
  fail("MemsetD8Async", cuda::InvalidValue);
  expectError(kernel->launch({query, key, output, 1.0}, stream), StatusCode::DriverFailure,
              "failed to fill scratch memory with zeros: injected error (CUDA_ERROR_1)");
}

// 1000 rows, in units of 64.
TEST_F(LaunchTest, ScratchInWholeUnits) {
  std::vector<KernelPlan> plans = makeSplitPlans();
  plans[0].scratch.push_back({6, "f32", {{0, 2, 64, 1, 64}}, false});
  Result<Kernel> kernel = Kernel::load(makeImage(plans));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  Result<size_t> bytes = kernel->getWorkspaceBytes({query, key, output, 1.0});
  ASSERT_TRUE(bytes) << bytes.getStatus().str();
  EXPECT_EQ(*bytes, 16512000u + 1024 * 4);
}

TEST_F(LaunchTest, Workspace) {
  Result<Kernel> kernel = Kernel::load(makeImage(makeSplitPlans()));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  Result<size_t> bytes = kernel->getWorkspaceBytes({query, key, output, 1.0});
  ASSERT_TRUE(bytes) << bytes.getStatus().str();
  EXPECT_EQ(*bytes, 16512000u);
  auto launch = [&](uintptr_t address, size_t size) {
    return kernel->launch({query, key, output, 1.0}, nullptr,
                          {reinterpret_cast<void *>(address), size});
  };
  expectInvalid(launch(0x500000, *bytes - 1),
                "expected a workspace of at least 16512000 bytes, got 16511999",
                "ask getWorkspaceBytes for these arguments");
  expectInvalid(launch(0x500010, *bytes),
                "expected a workspace at a multiple of 256 bytes, got one that is not");
  fake->parameterSizes = {8, 8, 8, 8, 8};
  Status status = launch(0x500000, *bytes);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(as<uint64_t>(fake->launches[1].parameters[1]), 0x500000u);
  // Nothing was allocated, so nothing is freed.
  EXPECT_EQ(fake->scratchBytes, 0u);
  EXPECT_EQ(llvm::count(fake->calls, "MemFreeAsync"), 0);
  bytes = kernel->getWorkspaceBytes({query});
  EXPECT_EQ(bytes.getStatus().message, "expected 4 arguments, got 1");
}

TEST_F(LaunchTest, ScratchOfNothing) {
  Result<Kernel> kernel = Kernel::load(makeImage(makeSplitPlans()));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  for (int64_t batches : {int64_t(2), int64_t(1) << 62}) {
    FakeTensor none(0, {batches, 8, 0, 128});
    Status status = kernel->launch({none, key, none, 1.0}, nullptr);
    EXPECT_TRUE(status.ok()) << status.str();
  }
  EXPECT_EQ(fake->scratchBytes, 0u);
  EXPECT_EQ(fake->numLaunches, 0u);
}

TEST_F(LaunchTest, NoRoomForScratch) {
  Result<Kernel> kernel = Kernel::load(makeImage(makeSplitPlans()));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  auto launch = [&](const FakeTensor &result) {
    return kernel->launch({query, key, result, 1.0}, nullptr);
  };
  fail("MemAllocAsync", cuda::OutOfMemory);
  expectError(
      launch(output), StatusCode::OutOfMemory,
      "failed to allocate 16512000 bytes of scratch memory: out of memory (CUDA_ERROR_2)",
      "free device memory, or use smaller tensors, or compile with splits=1, which needs no "
      "scratch memory");
  fail("MemAllocAsync", cuda::NotSupported);
  expectError(launch(output), StatusCode::DriverFailure,
              "failed to allocate 16512000 bytes of scratch memory: injected error "
              "(CUDA_ERROR_801)",
              "compile with splits=1, which needs no scratch memory");
  fail("", cuda::Success);
  expectError(launch({16, {int64_t(1) << 40, int64_t(1) << 20, 1, 128}}), StatusCode::OutOfMemory,
              "expected scratch memory whose bytes fit 63 bits, got more");
  expectInvalid(launch({16, {8, 128}}), "expected argument 2 of at least 3 dimensions, got 2");
}

/// The fixture looks for what is left.
TEST_F(LaunchTest, ScratchIsFreedAfterErrors) {
  Result<Kernel> kernel = Kernel::load(makeImage(makeSplitPlans()));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  auto launch = [&](const FakeTensor &first) {
    return kernel->launch({first, key, output, 1.0}, nullptr);
  };
  expectInvalid(launch({0x100008, {2, 8, 1000, 128}}),
                "expected the address of argument 0 to be a multiple of 16 bytes and not null, got "
                "0x100008");
  EXPECT_EQ(fake->allocations, 0);
  EXPECT_GT(fake->scratchBytes, 0u);
  fail("LaunchKernelEx", cuda::LaunchOutOfResources);
  EXPECT_EQ(launch(query).code, StatusCode::ResourceLimit);
  EXPECT_EQ(fake->allocations, 0);
  fail("MemFreeAsync", cuda::InvalidValue);
  EXPECT_EQ(launch(query).message, "failed to free scratch memory: injected error (CUDA_ERROR_1)");
  fake->allocations = 0;
}
