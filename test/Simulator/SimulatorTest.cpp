//===- SimulatorTest.cpp - every schedule, on many interleavings ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Kernels as the compiler makes them, on shapes of one to a few tiles: partial tiles, rows that
// keep nothing, M != N. Each shape of each kernel runs on 200 seeds of random times; the first of
// them computes values, which are compared with the definition in f64.
//
// The compiler chooses (attn-set-schedule, chooseForCUDA) by the larger of D and Dv, up to 64, 128,
// 192 and 256, by whether there is a mask or score, and by whether these gather; always two stages.
// Every variant runs in each of the four classes, which covers every rule; the schedules below add
// head dimensions between them and what options can ask for.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Simulator/Lowered.h"
#include "gtest/gtest.h"

namespace attn::test {

constexpr unsigned kSeeds = 200;

/// M < N, M > N with rows that keep nothing under a causal mask, exact tiles, a single row, no
/// keys.
static const std::vector<Extents> kShapes = {{150, 330, 1, 2, 1},
                                             {300, 70, 1, 1, 1},
                                             {128, 256, 1, 1, 1},
                                             {1, 500, 1, 1, 1},
                                             {70, 0, 1, 1, 1}};

static void check(const Job &job, const std::vector<Extents> &shapes) {
  SCOPED_TRACE(job.name());
  auto module = lower(job);
  ASSERT_TRUE(bool(module)) << toString(module.takeError());
  auto launch = sim::Launch::create(**module);
  ASSERT_TRUE(bool(launch)) << toString(launch.takeError());
  for (auto [index, extents] : llvm::enumerate(shapes)) {
    Call call(job, extents, 7 + index);
    std::string findings = simulate(*launch, call, 1000 * index, kSeeds, /*numbered=*/1);
    EXPECT_EQ(findings, "") << "M=" << extents.m << " N=" << extents.n;
  }
}

//===----------------------------------------------------------------------------------------===//
// Variants, with the compiler's own schedule
//===----------------------------------------------------------------------------------------===//

struct SimulatedVariantTest : testing::TestWithParam<std::tuple<size_t, int64_t>> {};

TEST_P(SimulatedVariantTest, IsFreeOfRacesAndRight) {
  auto [index, d] = GetParam();
  Job job{getVariants()[index], {}};
  job.problem.type = index % 3 ? "bf16" : "f16";
  job.problem.d = job.problem.dv = d;
  job.problem.withLse = true;
  check(job, kShapes);
}

static std::string
nameVariant(const testing::TestParamInfo<SimulatedVariantTest::ParamType> &info) {
  auto [index, d] = info.param;
  return getVariants()[index].name + "_D" + std::to_string(d);
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedVariantTest,
                         testing::Combine(testing::Range<size_t>(0, getVariants().size()),
                                          testing::Values(64, 128, 192, 256)),
                         nameVariant);

//===----------------------------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------------------------===//

/// D, Dv, and what overrides the compiler's choice.
struct Schedule {
  int64_t d, dv, blockM, blockN, stages;
};

struct ScheduleTest : testing::TestWithParam<Schedule> {};

TEST_P(ScheduleTest, IsFreeOfRacesAndRight) {
  Schedule schedule = GetParam();
  for (const char *name : {"Full", "CausalBottomRight", "DocumentUnknown"}) {
    Job job{getVariant(name), {}, schedule.stages};
    job.problem.type = "bf16";
    job.problem.d = schedule.d;
    job.problem.dv = schedule.dv;
    job.problem.blockM = schedule.blockM;
    job.problem.blockN = schedule.blockN;
    check(job, {{200, 600, 1, 1, 1}, {400, 130, 1, 1, 1}});
  }
}

static std::string nameSchedule(const testing::TestParamInfo<Schedule> &info) {
  const Schedule &s = info.param;
  return "D" + std::to_string(s.d) + "_Dv" + std::to_string(s.dv) + "_M" +
         std::to_string(s.blockM) + "_N" + std::to_string(s.blockN) + "_stages" +
         std::to_string(s.stages);
}

INSTANTIATE_TEST_SUITE_P(
    All, ScheduleTest,
    testing::Values(
        // The compiler's rules.
        Schedule{8, 8, 0, 0, 0}, Schedule{40, 40, 0, 0, 0}, Schedule{64, 64, 0, 0, 0},
        Schedule{72, 72, 0, 0, 0}, Schedule{80, 80, 0, 0, 0}, Schedule{96, 96, 0, 0, 0},
        Schedule{112, 112, 0, 0, 0}, Schedule{128, 128, 0, 0, 0}, Schedule{128, 64, 0, 0, 0},
        Schedule{136, 120, 0, 0, 0}, Schedule{192, 192, 0, 0, 0}, Schedule{192, 128, 0, 0, 0},
        Schedule{64, 256, 0, 0, 0}, Schedule{256, 256, 0, 0, 0},
        // Sizes and stages that options can ask for.
        Schedule{64, 64, 64, 128, 0}, Schedule{64, 64, 128, 128, 3}, Schedule{64, 64, 128, 64, 4},
        Schedule{64, 64, 128, 176, 0}, Schedule{64, 64, 192, 112, 0},
        Schedule{128, 128, 64, 128, 0}, Schedule{128, 128, 128, 80, 3},
        Schedule{128, 128, 128, 176, 0}, Schedule{128, 128, 128, 96, 1}),
    nameSchedule);

//===----------------------------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------------------------===//

TEST(SimulatorTest, StridedTensorsAndGroupedHeads) {
  Job job{kCausal, {}};
  job.problem.type = "bf16";
  job.problem.memory = Memory::RowsFirst;
  check(job, {{140, 200, 2, 4, 2}});
}

/// The synchronous programs of rooms 4 and 5 compute the same. What looks for unread values has its
/// marks from room 6.
TEST(SimulatorTest, AllRoomsAreRight) {
  for (const char *name : {"Full", "CausalBottomRight", "AllScores", "SinkCausal"})
    for (Room door : {Room::Tile, Room::Placed}) {
      Job job{getVariant(name), {}};
      job.problem.type = "bf16";
      job.problem.withLse = true;
      auto module = lower(job, door);
      ASSERT_TRUE(bool(module)) << toString(module.takeError());
      auto simulator = sim::Simulator::create(getKernel(**module));
      ASSERT_TRUE(bool(simulator)) << name << ": " << toString(simulator.takeError());
      Call call(job, {150, 330, 1, 2, 1}, 3);
      EXPECT_EQ(simulate(*simulator, call, 0, /*seeds=*/4, /*numbered=*/1), "") << name;
    }
}

/// A seed reproduces a run; another seed is another run.
TEST(SimulatorTest, SeedsReproduce) {
  Job job{kCausal, {}};
  job.problem.type = "bf16";
  auto module = lower(job);
  ASSERT_TRUE(bool(module)) << toString(module.takeError());
  auto simulator = sim::Simulator::create(getKernel(**module));
  ASSERT_TRUE(bool(simulator)) << toString(simulator.takeError());
  Call call(job, {300, 300, 1, 1, 1}, 1);
  std::vector<sim::Argument> arguments = call.getArguments();
  auto run = [&](uint64_t seed) {
    sim::Options options;
    options.seed = seed;
    options.numbers = false;
    return llvm::cantFail(simulator->runBlock(arguments, options, {0, 0, 0})).cycles;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

} // namespace attn::test
