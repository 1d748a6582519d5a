//===- SearchModelTest.cpp - sizes that a search leaves out are none that are fast ---------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/SearchModel.h"
#include "test/Unit/GPUProblems.h"

using namespace attn;

static GPUBlock makeBlock(const GPUProblem &problem, int64_t m, int64_t n, bool stays = false) {
  return {problem.headDim,
          problem.valueDim,
          2,
          {.blockM = m, .blockN = n, .stages = 2, .consumers = m / 64, .stay = stays}};
}

static GPUProblem makeProblem(int64_t d, bool isMasked) {
  GPUProblem problem{d, d};
  problem.isMasked = isMasked;
  problem.work.weight = isMasked;
  return problem;
}

static std::string ask(int64_t d, bool isMasked, int64_t m, int64_t n, int64_t rows = 8192) {
  GPUProblem problem = makeProblem(d, isMasked);
  bool stays = chooseForCUDA(getHopper(), problem).schedule.stay;
  return leaveOut(getHopper(), problem, makeBlock(problem, m, n, stays), rows);
}

// Whatever the attention and its rows, over all that the rule tells apart.
TEST(SearchModel, KeepsWhatTheRuleChooses) {
  forEachProblem([](const GPUProblem &problem) {
    Schedule sizes = chooseForCUDA(getHopper(), problem).schedule;
    std::optional<LengthChoice> other = chooseForLength(getHopper(), problem);
    for (int64_t rows : {1, 64, 65, 128, 129, 8192}) {
      GPUBlock block = makeBlock(problem, sizes.blockM, sizes.blockN, sizes.stay);
      ASSERT_EQ(leaveOut(getHopper(), problem, block, rows), "")
          << problem.headDim << " " << problem.valueDim;
      if (!other)
        continue;
      const Schedule &forLength = other->choice.schedule;
      block = makeBlock(problem, forLength.blockM, forLength.blockN, true);
      ASSERT_EQ(leaveOut(getHopper(), problem, block, rows), "")
          << problem.headDim << " " << problem.valueDim;
    }
  });
}

// What was fastest in bench/results/gpu-schedules.json, and what came within 5 % of it.
TEST(SearchModel, KeepsWhatWasFast) {
  for (int64_t n : {64, 80})
    EXPECT_EQ(ask(128, /*isMasked=*/false, 192, n), "");
  for (bool isMasked : {false, true})
    for (int64_t n : {80, 96, 112, 128, 144, 160, 176})
      EXPECT_EQ(ask(128, isMasked, 128, n), "") << n;
  for (int64_t n : {64, 80, 96})
    EXPECT_EQ(ask(64, /*isMasked=*/true, 64, n, 512), "") << n;
}

// What ptxas spills, by 24 to 1900 bytes (search_spills.py asks it again).
TEST(SearchModel, LeavesOutWhatSpills) {
  for (bool isMasked : {false, true}) {
    for (int64_t n : {96, 112, 128, 144, 160, 176})
      EXPECT_NE(ask(128, isMasked, 192, n), "") << n;
    for (int64_t n : {144, 160, 176})
      EXPECT_NE(ask(64, isMasked, 192, n), "") << n;
    // Three consumers have no registers for 256 columns of values.
    for (int64_t n : {16, 32, 48, 64})
      EXPECT_NE(ask(256, isMasked, 192, n), "") << n;
  }
  EXPECT_NE(ask(256, /*isMasked=*/true, 128, 80), "");
  for (int64_t n : {80, 96})
    EXPECT_NE(ask(256, /*isMasked=*/true, 64, n), "") << n;
  EXPECT_EQ(ask(128, false, 192, 96), "left out of the search: block_m 192 and block_n 96 take "
                                      "about 168 registers of the 160 of a thread on sm_90a");
}

// 64 rows read keys at the limit of L2, unless there are no more, or few columns.
TEST(SearchModel, LeavesOutWhatWaitsForMemory) {
  EXPECT_EQ(ask(128, false, 64, 64),
            "left out of the search: block_m 64 reads 65536 bytes for each key, 4.0 times the "
            "fewest, and waits for them on sm_90a");
  EXPECT_EQ(ask(128, false, 64, 64, /*rows=*/64), "");
  EXPECT_NE(ask(128, false, 64, 64, /*rows=*/65), "");
  EXPECT_EQ(ask(64, false, 64, 64), "");
  EXPECT_EQ(ask(128, false, 128, 64), "");
}
