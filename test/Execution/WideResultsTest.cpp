//===- WideResultsTest.cpp - results of f32 of elements of 16 bits ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Parts of keys on several GPUs add up in f32 (decision 0089). Bounds are those of results of 16
// bits: factors are rounded as before.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Dims.h"
#include "test/Execution/Execution.h"
#include "test/Execution/GradExecution.h"
#include "test/Execution/GradProblem.h"
#include "test/Execution/Sequences.h"
#include "gtest/gtest.h"

namespace attn::test {

static const std::vector<Extents> kExtents = {
    {0, 5}, {5, 0}, {1, 1}, {1, 129}, {129, 1}, {7, 127, 2, 4, 2}, {257, 300}, {130, 70, 1, 6, 2}};

static Problem makeProblem(int64_t d, int64_t dv, const char *type = "bf16") {
  Problem problem;
  problem.type = type;
  problem.isWide = true;
  problem.withLse = true;
  problem.d = d;
  problem.dv = dv;
  return problem;
}

//===----------------------------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------------------------===//

struct WideResultsDimsTest : testing::TestWithParam<Dims> {};

TEST_P(WideResultsDimsTest, MatchesReference) {
  for (const char *type : {"bf16", "f16"}) {
    Problem problem = makeProblem(GetParam().first, GetParam().second, type);
    for (const Variant &variant : {kFull, kCausal})
      Execution().check(variant, problem, kExtents);
  }
}

TEST_P(WideResultsDimsTest, Gradients) {
  Problem problem = makeProblem(GetParam().first, GetParam().second);
  for (const Variant &variant : {kFull, kCausal})
    GradExecution().check(variant, problem, {{1, 1}, {129, 127}, {127, 257, 1, 6, 1}});
}

INSTANTIATE_TEST_SUITE_P(All, WideResultsDimsTest,
                         testing::Values(Dims(64, 64), Dims(128, 128), Dims(128, 64)), nameDims);

TEST(WideResultsTest, WideHeads) {
  for (auto [d, dv] : {Dims(192, 128), Dims(256, 256)})
    Execution().check(kCausal, makeProblem(d, dv), {{1, 1}, {129, 127}, {127, 257}});
}

TEST(WideResultsTest, Scores) {
  for (const Variant &variant : getVariants()) {
    Execution().check(variant, makeProblem(64, 64), {{129, 127}, {127, 257, 2, 4, 2}});
    if (variant.hasFactors() || !getTrained(variant).empty())
      GradExecution().check(variant, makeProblem(64, 64), {{129, 127}, {127, 257, 2, 4, 2}});
  }
}

TEST(WideResultsTest, PartsOfKeys) {
  Problem problem = makeProblem(64, 64);
  problem.splits = 3;
  Execution().check(kCausal, problem, {{1, 1}, {3, 600, 1, 2, 1}, {127, 257}});
}

TEST(WideResultsTest, Pages) {
  Problem problem = makeProblem(64, 64);
  problem.page = 16;
  Execution().checkPaged(kCausal, problem, {{1, 64}, {33, 128, 2, 4, 2}});
}

TEST(WideResultsTest, SequencesOfRows) {
  Problem problem = makeProblem(64, 64);
  problem.isRagged = true;
  std::vector<Sequences> sequences = {
      {{0, 0, 5, 75, 78}, {0, 9, 9, 40, 190}, 90, 200, 70, 150, 4, 2, 3}};
  Execution().checkRagged(kCausal, problem, sequences);
  GradExecution().checkRagged(kCausal, problem, sequences);
}

TEST(WideResultsTest, AnyStrides) {
  for (Memory memory : {Memory::RowsFirst, Memory::Random}) {
    Problem problem = makeProblem(64, 64);
    problem.memory = memory;
    Execution().check(kCausal, problem, kExtents);
    GradExecution().check(kCausal, problem, kExtents);
  }
}

} // namespace attn::test
