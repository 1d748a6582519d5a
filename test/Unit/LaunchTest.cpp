//===- LaunchTest.cpp - from arguments to a launch --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Stopwatch.h"
#include "test/Unit/LaunchFixture.h"
#include <cstdio>
#include <thread>

using namespace attn;

/// Allocations of this thread, to show that a launch makes none.
static thread_local size_t numAllocations = 0;
void *operator new(size_t bytes) {
  ++numAllocations;
  return std::malloc(bytes ? bytes : 1);
}
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, size_t) noexcept { std::free(pointer); }

TEST_F(LaunchTest, Launch) {
  Kernel kernel = load(makePlan());
  fake->parameterSizes = {128, 128, 8, 4, 8, 4};
  void *stream = reinterpret_cast<void *>(0x77);
  Status status = kernel.launch({query, key, output, 0.125}, stream);
  ASSERT_TRUE(status.ok()) << status.str();

  ASSERT_EQ(fake->launches.size(), 1u);
  const FakeCuda::Launch &launch = fake->launches[0];
  EXPECT_EQ(launch.config.gridX, 8u);
  EXPECT_EQ(launch.config.gridY, 8u);
  EXPECT_EQ(launch.config.gridZ, 2u);
  EXPECT_EQ(launch.config.blockX, 384u);
  EXPECT_EQ(launch.config.sharedBytes, 200000u);
  EXPECT_EQ(launch.config.stream, stream);
  EXPECT_TRUE(launch.cluster.empty());
  EXPECT_EQ(as<cuda::TensorMapObject>(launch.parameters[0]).words[0], 0x100000u);
  EXPECT_EQ(as<uint64_t>(launch.parameters[2]), 0x300000u);
  EXPECT_EQ(as<int32_t>(launch.parameters[3]), 500);
  EXPECT_EQ(as<int64_t>(launch.parameters[4]), 1000 * 128);
  EXPECT_EQ(as<float>(launch.parameters[5]), 0.125f);

  ASSERT_EQ(fake->encodings.size(), 2u);
  const FakeCuda::Encoding &encoding = fake->encodings[1];
  EXPECT_EQ(encoding.type, cuda::MapBFloat16);
  EXPECT_EQ(encoding.swizzle, cuda::Swizzle128);
  EXPECT_EQ(encoding.sizes, std::vector<uint64_t>({128, 500, 8, 2}));
  EXPECT_EQ(encoding.strides, std::vector<uint64_t>({256, 128000, 1024000}));
  EXPECT_EQ(encoding.box, std::vector<uint32_t>({64, 128, 1, 1}));
}

TEST_F(LaunchTest, NothingThatACaptureForbids) {
  Kernel kernel = load(makePlan());
  fake->capture = cuda::CaptureActive;
  fake->calls.clear();
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->calls, std::vector<std::string>({"CtxPushCurrent", "PointerGetAttributes",
                                                   "PointerGetAttributes", "PointerGetAttributes",
                                                   "TensorMapEncodeTiled", "TensorMapEncodeTiled",
                                                   "LaunchKernelEx", "CtxPopCurrent"}));
  fail("LaunchKernelEx", cuda::CaptureInvalidated);
  Status status = kernel.launch({query, key, output, 1.0}, nullptr);
  EXPECT_EQ(status.code, StatusCode::CaptureInProgress) << status.str();
}

TEST_F(LaunchTest, Clusters) {
  KernelPlan plan = makePlan();
  plan.cluster = {2, 1, 1};
  Kernel kernel = load(plan);
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->launches[0].cluster, std::vector<unsigned>({2, 1, 1}));
}

TEST_F(LaunchTest, SeveralKernels) {
  KernelPlan merge = makePlan();
  merge.name = "merge";
  merge.parameters = {merge.parameters[2]};
  Result<Kernel> kernel = Kernel::load(makeImage({makePlan(), merge}));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  ASSERT_TRUE(kernel->launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->launches.size(), 2u);
}

TEST_F(LaunchTest, GridOfMultiprocessors) {
  KernelPlan plan = makePlan();
  plan.grid = {{{{SizeFactor::kMultiprocessors, 2, 1}}, {}, {}}};
  Kernel kernel = load(plan);
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->launches[0].config.gridX, 264u);
}

// Those that others are to have are left, and one is not.
TEST_F(LaunchTest, GridLeavesMultiprocessors) {
  KernelPlan plan = makePlan();
  for (auto [less, blocks] : {std::pair(8u, 124u), {131u, 1u}, {132u, 1u}, {1u << 20, 1u}}) {
    fake->launches.clear();
    plan.grid = {{{{SizeFactor::kMultiprocessors, 1, 1, 1, 1, {}, less}}, {}, {}}};
    Kernel kernel = load(plan);
    ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
    EXPECT_EQ(fake->launches[0].config.gridX, blocks);
  }
}

TEST_F(LaunchTest, ClustersFillTheGrid) {
  KernelPlan plan = makePlan();
  plan.cluster = {2, 1, 1};
  Kernel kernel = load(plan);
  expectError(kernel.launch({query, key, FakeTensor(16, {2, 8, 1100, 128}), 1.0}, nullptr),
              StatusCode::InvalidKernel,
              "expected clusters of 2 blocks along x to fill the grid of kernel 'attention', got 9 "
              "blocks");
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->launches[0].cluster, std::vector<unsigned>({2, 1, 1}));
  EXPECT_FALSE(fake->launches[0].isProgrammatic);
}

TEST_F(LaunchTest, ProgrammaticLaunch) {
  KernelPlan plan = makePlan();
  plan.isProgrammatic = true;
  Kernel kernel = load(plan);
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_TRUE(fake->launches[0].isProgrammatic);
  EXPECT_TRUE(fake->launches[0].cluster.empty());
}

TEST_F(LaunchTest, OldDriversLaunchInOrder) {
  fake->version = 12020;
  KernelPlan plan = makePlan();
  plan.isProgrammatic = true;
  Kernel kernel = load(plan);
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_FALSE(fake->launches[0].isProgrammatic);
}

TEST_F(LaunchTest, EmptyGridLaunchesNothing) {
  Kernel kernel = load(makePlan());
  for (unsigned dim : {0u, 1u, 2u}) {
    FakeTensor none(0, {2, 8, 1000, 128});
    none.shape[dim] = 0;
    Status status = kernel.launch({none, none, none, 1.0}, nullptr);
    EXPECT_TRUE(status.ok()) << status.str();
  }
  EXPECT_EQ(fake->numLaunches, 0u);
  EXPECT_EQ(fake->numEncodings, 0u);
}

TEST_F(LaunchTest, NoKeysStillLaunches) {
  Kernel kernel = load(makePlan());
  fake->parameterSizes = {128, 128, 8, 4};
  FakeTensor none(0, {2, 8, 0, 128});
  Status status = kernel.launch({query, none, output, 1.0}, nullptr);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(as<int32_t>(fake->launches[0].parameters[3]), 0);
  EXPECT_EQ(fake->encodings[1].sizes, std::vector<uint64_t>({1, 1, 1, 1}));
  EXPECT_NE(fake->encodings[1].address, nullptr);
}

TEST_F(LaunchTest, GridTooLarge) {
  Kernel kernel = load(makePlan());
  FakeTensor many(16, {70000, 8, 1000, 128});
  expectError(kernel.launch({query, key, many, 1.0}, nullptr), StatusCode::ResourceLimit,
              "expected at most 65535 blocks along z in kernel 'attention', got 70000",
              "split the batch into several calls");
  FakeTensor huge(16, {int64_t(1) << 62, int64_t(1) << 62, 1, 128});
  KernelPlan plan = makePlan();
  plan.grid = {{{{2, 0, 1}, {2, 1, 1}}, {}, {}}};
  expectError(load(plan).launch({query, key, huge, 1.0}, nullptr), StatusCode::ResourceLimit,
              "expected at most 2147483647 blocks along x in kernel 'attention', got "
              "9223372036854775807");
}

TEST_F(LaunchTest, LaunchFails) {
  Kernel kernel = load(makePlan());
  fail("LaunchKernelEx", static_cast<cuda::Code>(700));
  Status status = kernel.launch({query, key, output, 1.0}, nullptr);
  EXPECT_EQ(status.code, StatusCode::DriverFailure);
  EXPECT_NE(status.hint.find("a kernel that ran earlier failed"), std::string::npos);
  fail("LaunchKernelEx", cuda::LaunchOutOfResources);
  status = kernel.launch({query, key, output, 1.0}, nullptr);
  EXPECT_EQ(status.code, StatusCode::ResourceLimit) << status.str();
  fail("CtxPushCurrent", cuda::InvalidContext);
  status = kernel.launch({query, key, output, 1.0}, nullptr);
  EXPECT_EQ(status.code, StatusCode::DriverFailure) << status.str();
  fake->failure = cuda::Success;
}

TEST_F(LaunchTest, ManyThreads) {
  Kernel kernel = load(makePlan());
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      FakeTensor mine(0x100000 + 0x1000 * i, {2, 8, 1000, 128});
      for (int j = 0; j < 100; ++j)
        good += kernel.launch({mine, key, output, 1.0}, nullptr).ok();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 800);
  EXPECT_EQ(fake->numLaunches, 800u);
  EXPECT_EQ(fake->numEncodings, 16u);
}

TEST_F(LaunchTest, HostCostOfScratch) {
  Result<Kernel> kernel = Kernel::load(makeImage(makeSplitPlans()));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  fake->records = false;
  LaunchArgument arguments[] = {query, key, output, 1.0};
  auto run = [&] {
    for (int i = 0; i < 1000; ++i)
      ASSERT_TRUE(kernel->launch(std::span<const LaunchArgument>(arguments), nullptr).ok());
  };
  run();
  size_t before = numAllocations;
  run();
  EXPECT_EQ(numAllocations, before);
}

TEST_F(LaunchTest, HostCost) {
  Kernel kernel = load(makePlan());
  fake->records = false;
  LaunchArgument arguments[] = {query, key, output, 1.0};
  auto run = [&](int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(kernel.launch(std::span<const LaunchArgument>(arguments), nullptr).ok());
  };
  run(1000);
  // A launch of tensors seen before allocates nothing on the host either.
  size_t before = numAllocations;
  run(1000);
  EXPECT_EQ(numAllocations, before);
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    Stopwatch watch;
    run(20000);
    best = std::min(best, watch.elapsedMs() * 1e3 / 20000);
  }
  std::printf("one launch costs the host %.3f us\n", best);
  RecordProperty("microseconds", std::to_string(best));
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  EXPECT_LT(best, 4.0);
#endif
}
