//===- SplitKeysTest.cpp - keys split over blocks, both kernels -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Simulator/Lowered.h"
#include "gtest/gtest.h"

namespace attn::test {

/// Parts of whole tiles and a short one; fewer tiles than parts, so that parts are empty; rows that
/// keep nothing in some parts, and in none; a single row; no keys at all.
static const std::vector<Extents> kShapes = {{150, 530, 1, 2, 1}, {200, 1000, 2, 2, 1},
                                             {300, 70, 1, 1, 1},  {1, 700, 2, 4, 2},
                                             {130, 257, 1, 1, 1}, {70, 0, 1, 2, 1}};

static void check(const Job &job, unsigned seeds) {
  SCOPED_TRACE(job.name());
  auto module = lower(job);
  ASSERT_TRUE(bool(module)) << toString(module.takeError());
  auto launch = sim::Launch::create(**module);
  ASSERT_TRUE(bool(launch)) << toString(launch.takeError());
  ASSERT_EQ(launch->getSimulators().size(), 2u);
  for (auto [index, extents] : llvm::enumerate(kShapes)) {
    Call call(job, extents, 7 + index);
    std::string findings = simulate(*launch, call, 1000 * index, seeds, /*numbered=*/1);
    EXPECT_EQ(findings, "") << "M=" << extents.m << " N=" << extents.n;
  }
}

struct SplitVariantTest : testing::TestWithParam<size_t> {};

TEST_P(SplitVariantTest, IsFreeOfRacesAndRight) {
  Job job{getVariants()[GetParam()], {}};
  job.problem.type = GetParam() % 3 ? "bf16" : "f16";
  job.problem.withLse = true;
  job.problem.splits = 3;
  check(job, /*seeds=*/200);
}

INSTANTIATE_TEST_SUITE_P(All, SplitVariantTest, testing::Range<size_t>(0, getVariants().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return getVariants()[info.param].name;
                         });

/// Numbers of parts, columns and tiles; with and without lse.
TEST(SplitKeysTest, SchedulesAreRight) {
  struct Schedule {
    int64_t d, dv, blockM, blockN, splits;
  };
  for (Schedule schedule : {Schedule{64, 64, 64, 64, 2}, Schedule{64, 64, 0, 0, 7},
                            Schedule{80, 80, 0, 0, 3}, Schedule{192, 128, 0, 0, 4},
                            Schedule{256, 256, 0, 0, 2}, Schedule{128, 128, 128, 80, 16}}) {
    Job job{kCausal, {}};
    job.problem.type = "bf16";
    job.problem.d = schedule.d;
    job.problem.dv = schedule.dv;
    job.problem.blockM = schedule.blockM;
    job.problem.blockN = schedule.blockN;
    job.problem.splits = schedule.splits;
    job.problem.withLse = schedule.splits % 2;
    check(job, /*seeds=*/200);
  }
}

} // namespace attn::test
