//===- LaunchWaysTest.cpp - the kernel that a call takes --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/LaunchFixture.h"

using namespace attn;

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
