//===- LaunchTest.cpp - from arguments to a launch --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Stopwatch.h"
#include "test/Unit/Runtime/Fixture.h"
#include "llvm/ADT/STLExtras.h"
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

namespace {
class LaunchTest : public FakeCudaTest {
protected:
  Kernel load(const KernelPlan &plan) {
    Result<Kernel> kernel = Kernel::load(makeImage({plan}));
    EXPECT_TRUE(kernel) << kernel.getStatus().str();
    return std::move(*kernel);
  }

  void expectError(const Status &status, StatusCode code, const std::string &message,
                   const std::string &hint = "") {
    EXPECT_EQ(status.code, code) << status.str();
    EXPECT_EQ(status.message, message);
    if (!hint.empty())
      EXPECT_EQ(status.hint, hint);
    EXPECT_TRUE(fake->launches.empty());
  }
  void expectInvalid(const Status &status, const std::string &message,
                     const std::string &hint = "") {
    expectError(status, StatusCode::InvalidArgument, message, hint);
  }

  template <typename T> static T as(const std::string &bytes) {
    T value{};
    EXPECT_EQ(bytes.size(), sizeof(T));
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(T)));
    return value;
  }

  FakeTensor query{0x100000, {2, 8, 1000, 128}};
  FakeTensor key{0x200000, {2, 8, 500, 128}};
  FakeTensor output{0x300000, {2, 8, 1000, 128}};
};
} // namespace

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

//===----------------------------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------------------------===//

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

// One function, two ways: the first whose ranges hold runs, with its own scratch.
TEST_F(LaunchTest, WaysByExtents) {
  std::vector<KernelPlan> plans = makeSplitPlans();
  for (KernelPlan &plan : plans) {
    plan.way = "few";
    plan.when = {{{{0, 2}, 1, 64}, {{1, 2}, 500, 1 << 20}}, {{{0, 2}, 70, 70}}};
  }
  plans.push_back(makePlan());
  Result<Kernel> kernel = Kernel::load(makeImage(plans));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  EXPECT_EQ(kernel->getKernels().size(), 3u);
  auto count = [&](const FakeTensor &rows, const FakeTensor &keys) {
    fake->launches.clear();
    Status status = kernel->launch({rows, keys, output, 1.0}, nullptr);
    EXPECT_TRUE(status.ok()) << status.str();
    return fake->launches.size();
  };
  FakeTensor few(0x100000, {2, 8, 64, 128}), more(0x100000, {2, 8, 65, 128}),
      short_(0x200000, {2, 8, 499, 128});
  EXPECT_EQ(count(few, key), 2u);
  EXPECT_EQ(count(more, key), 1u);
  EXPECT_EQ(count(few, short_), 1u);
  // The other condition.
  EXPECT_EQ(count(FakeTensor(0x100000, {2, 8, 70, 128}), short_), 2u);
  Result<size_t> bytes = kernel->getWorkspaceBytes({more, key, output, 1.0});
  EXPECT_TRUE(bytes && *bytes == 0);
  fake->launches.clear();
  expectInvalid(kernel->launch({FakeTensor(16, {8, 128}), key, output, 1.0}, nullptr),
                "expected argument 0 of at least 3 dimensions, got 2");
}

// A range of a quotient: query heads for each key head, rounded up.
TEST_F(LaunchTest, WaysByGroups) {
  std::vector<KernelPlan> plans = makeSplitPlans();
  for (KernelPlan &plan : plans) {
    plan.way = "groups";
    plan.when = {{{{0, 1}, 0, 3, {1, 1}}}};
  }
  plans.push_back(makePlan());
  Result<Kernel> kernel = Kernel::load(makeImage(plans));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  auto count = [&](int64_t heads) {
    fake->launches.clear();
    FakeTensor rows(0x100000, {2, heads, 64, 128});
    Status status = kernel->launch({rows, key, output, 1.0}, nullptr);
    EXPECT_TRUE(status.ok()) << status.str();
    return fake->launches.size();
  };
  EXPECT_EQ(count(3 * key.shape[1]), 2u);
  EXPECT_EQ(count(3 * key.shape[1] + 1), 1u);
}

// A range of parts, which the device and the other extents decide: 128 blocks fill 132
// multiprocessors.
TEST_F(LaunchTest, WaysByParts) {
  std::vector<KernelPlan> plans = makeSplitPlans();
  SizeFactor parts{SizeFactor::kParts, 64};
  parts.of = {{1, 2, 256}, {0, 0}, {0, 1}};
  for (KernelPlan &plan : plans) {
    plan.way = "parts";
    plan.when = {{{parts, 2, 64}}};
  }
  plans.push_back(makePlan());
  Result<Kernel> kernel = Kernel::load(makeImage(plans));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  auto count = [&](int64_t batch, int64_t numKeys) {
    fake->launches.clear();
    FakeTensor rows(0x100000, {batch, 8, 64, 128}), keys(0x200000, {batch, 8, numKeys, 128});
    Status status = kernel->launch({rows, keys, output, 1.0}, nullptr);
    EXPECT_TRUE(status.ok()) << status.str();
    return fake->launches.size();
  };
  EXPECT_EQ(count(16, 8192), 1u);
  EXPECT_EQ(count(15, 8192), 2u);
  EXPECT_EQ(count(2, 8192), 2u);
  EXPECT_EQ(count(2, 256), 1u);
  EXPECT_EQ(count(0, 8192), 1u);
  fake->launches.clear();
  expectInvalid(kernel->launch({FakeTensor(16, {8}), key, output, 1.0}, nullptr),
                "expected argument 0 of at least 2 dimensions, got 1");
}

// A range of what the memory of the device moves in a second.
TEST_F(LaunchTest, WaysByDevice) {
  std::vector<KernelPlan> plans = makeSplitPlans();
  for (KernelPlan &plan : plans) {
    plan.way = "narrow";
    plan.when = {{{{SizeFactor::kMemoryRate}, 4000, INT64_MAX}}};
  }
  plans.push_back(makePlan());
  struct Case {
    int clock, bus;
    const char *way;
  };
  // An H100, its larger sibling and an H200: 3352, 3938 and 4916 GB/s; and a driver that does not
  // say.
  for (auto [clock, bus, expected] :
       {Case{2619000, 5120, ""}, {2619000, 6016, ""}, {3201000, 6144, "narrow"}, {0, 6144, ""}}) {
    fake->memoryClock = clock;
    fake->memoryBus = bus;
    Result<Kernel> kernel = Kernel::load(makeImage(plans));
    ASSERT_TRUE(kernel) << kernel.getStatus().str();
    Result<std::string> way = kernel->chooseWay({query, key, output, 1.0});
    ASSERT_TRUE(way) << way.getStatus().str();
    EXPECT_EQ(*way, expected);
  }
}

// The device decides how many parts there are: of a grid of four blocks, 31 on 132 multiprocessors.
TEST_F(LaunchTest, PartsFillTheDevice) {
  KernelPlan plan = makePlan();
  SizeFactor parts{SizeFactor::kParts, 64};
  parts.of = {{SizeFactor::kConstant, 40}, {SizeFactor::kConstant, 4}};
  plan.grid = {{{parts}, {}, {}}};
  Kernel kernel = load(plan);
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->launches[0].config.gridX, 31u);
}

TEST_F(LaunchTest, LastWayIsForAllCalls) {
  KernelPlan plan = makePlan();
  plan.when = {{{{0, 2}, 1, 64}}};
  Result<Kernel> kernel = Kernel::load(makeImage({plan}));
  EXPECT_EQ(kernel.getStatus().message,
            "expected the last kernel of the plan to be for all calls, got 'attention' for some");
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

TEST_F(LaunchTest, TensorMapsAreRemembered) {
  Kernel kernel = load(makePlan());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 2u);
  query.shape[2] = 999;
  output.shape[2] = 999;
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 3u);
  key.address += 16;
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 4u);
  key.strides = {8 * 500 * 136, 500 * 136, 136, 1};
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 5u);
  EXPECT_EQ(fake->encodings.back().strides[0], 272u);
  // Another kernel does not take the first one's maps.
  Kernel other = load(makePlan());
  ASSERT_TRUE(other.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 7u);
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

TEST_F(LaunchTest, StridesOfSingletonsMeanNothing) {
  Kernel kernel = load(makePlan());
  FakeTensor single(0x100000, {1, 1, 1, 128}, {7, 3, 1, 1});
  FakeTensor result(0x300000, {1, 1, 1, 128});
  Status status = kernel.launch({single, key, result, 1.0}, nullptr);
  EXPECT_TRUE(status.ok()) << status.str();
}

TEST_F(LaunchTest, BadTensorMaps) {
  Kernel kernel = load(makePlan());
  auto launchKey = [&](FakeTensor bad) {
    return kernel.launch({query, bad, output, 1.0}, nullptr);
  };
  expectInvalid(launchKey({0x200008, {2, 8, 500, 128}}),
                "expected the address of argument 1 to be a multiple of 16 bytes and not null, got "
                "0x200008",
                "start the tensor at a multiple of 8 elements of its allocation, or copy it");
  expectInvalid(launchKey({0, {2, 8, 500, 128}}),
                "expected the address of argument 1 to be a multiple of 16 bytes and not null, got "
                "0x0");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {1, 1, 130, 1}}),
                "expected the stride of dimension 2 of argument 1 to be a multiple of 8 elements "
                "(16 bytes), got 130",
                "pad the rows so that the stride is 136");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {8, 8, 128, 500}}),
                "expected the stride of dimension 3 of argument 1 to be 1, got 500",
                "copy the tensor so that this dimension is the innermost in memory");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {8, 8, -128, 1}}),
                "expected the stride of dimension 2 of argument 1 to be from 0 to 549755813880 "
                "elements, got -128");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {int64_t(1) << 39, 8, 128, 1}}),
                "expected the stride of dimension 0 of argument 1 to be from 0 to 549755813880 "
                "elements, got 549755813888");
  expectInvalid(launchKey({0x200000, {2, 8, (int64_t(1) << 32) + 1, 128}}),
                "expected the size of dimension 2 of argument 1 to be from 0 to 4294967296, got "
                "4294967297",
                "split the problem along this dimension");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {}, DataType::F16}),
                "expected argument 1 of type bf16, got f16", "convert it, or compile for f16");
  expectInvalid(launchKey({0x200000, {8, 500, 128}}),
                "expected argument 1 of at least 4 dimensions, got 3");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128, 3}}),
                "expected dimension 4 of argument 1 to have size 1, got 3");
  EXPECT_EQ(fake->numEncodings, 1u);
}

TEST_F(LaunchTest, EncodingFails) {
  Kernel kernel = load(makePlan());
  fail("TensorMapEncodeTiled", cuda::InvalidValue);
  // Twice: a failure is not remembered.
  for (int i = 0; i < 2; ++i)
    expectError(kernel.launch({query, key, output, 1.0}, nullptr), StatusCode::DriverFailure,
                "failed to encode the tensor map of argument 0: injected error (CUDA_ERROR_1)");
}

TEST_F(LaunchTest, MemoryOfOthers) {
  Kernel kernel = load(makePlan());
  fake->hostAddress = 0x200000;
  expectInvalid(kernel.launch({query, key, output, 1.0}, nullptr),
                "expected argument 1 in memory of device 0, got the address 0x200000, which the "
                "driver does not know",
                "copy the tensor to the device");
  fake->hostAddress = 0;
  fake->otherDeviceAddress = 0x300000;
  expectInvalid(kernel.launch({query, key, output, 1.0}, nullptr),
                "expected argument 2 in memory of device 0, got memory of device 1",
                "copy the tensor, or compile for that device");
  // A driver that does not answer says nothing against an address.
  fail("PointerGetAttributes", cuda::InvalidContext);
  EXPECT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
}

TEST_F(LaunchTest, BadArguments) {
  Kernel kernel = load(makePlan());
  expectInvalid(kernel.launch({query, key, output}, nullptr), "expected 4 arguments, got 3");
  expectInvalid(kernel.launch({query, 1, output, 1.0}, nullptr),
                "expected argument 1 to be a tensor, got an integer");
  expectInvalid(kernel.launch({query, key, output, key}, nullptr),
                "expected argument 3 to be a number, got a tensor");
  expectInvalid(kernel.launch({query, key, FakeTensor(0, {2, 8, 1000, 128}), 1.0}, nullptr),
                "expected argument 2 to have memory, got a null pointer");
  expectInvalid(kernel.launch({query, key, FakeTensor(16, {1000, 128}), 1.0}, nullptr),
                "expected argument 2 of at least 3 dimensions, got 2");
  expectInvalid(kernel.launch({FakeTensor(16, {2, 8, -1, 128}), key, output, 1.0}, nullptr),
                "expected the size of dimension 2 of argument 0 to be at least 0, got -1");
  TensorView shapeless{nullptr, DataType::BF16, 4, nullptr, nullptr};
  expectInvalid(kernel.launch({shapeless, key, output, 1.0}, nullptr),
                "expected argument 0 to have a shape, got null");
  FakeTensor deep(16, std::vector<int64_t>(9, 1));
  expectInvalid(kernel.launch({deep, key, output, 1.0}, nullptr),
                "expected argument 0 of 0 to 8 dimensions, got 9");
}

// Who knows arguments by name can say so.
TEST_F(LaunchTest, ArgumentsByName) {
  Kernel kernel = load(makePlan());
  Status status = kernel.launch({FakeTensor(16, {2, 8, -1, 128}), key, output, 1.0}, nullptr);
  ASSERT_TRUE(status.argument);
  EXPECT_EQ(status.argument->index, 0u);
  status.nameArgument("query");
  EXPECT_EQ(status.message,
            "query: expected the size of dimension 2 of query to be at least 0, got -1");
  // What is about no argument stays.
  status = kernel.launch({query}, nullptr);
  EXPECT_FALSE(status.argument);
  status.nameArgument("query");
  EXPECT_EQ(status.message, "expected 4 arguments, got 1");
}

TEST_F(LaunchTest, NarrowIntegers) {
  KernelPlan plan = makePlan();
  plan.parameters[4].type = "i32";
  plan.parameters[5].type = "i32";
  Kernel kernel = load(plan);
  expectInvalid(kernel.launch({query, key, output, int64_t(1) << 40}, nullptr),
                "expected argument 3 to fit 32 bits, got 1099511627776");
  expectInvalid(kernel.launch({query, key, output, 0.5}, nullptr),
                "expected argument 3 to be an integer, got a floating-point number");
  FakeTensor far(16, {2, 8, 1000, 128}, {8, int64_t(1) << 31, 128, 1});
  expectInvalid(kernel.launch({query, key, far, 1}, nullptr),
                "expected the stride of dimension 1 of argument 2 to fit 32 bits, got 2147483648");
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
