//===- WideElementsTest.cpp - f32 on GPUs, whose products multiply 16 bits --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The bounds are those of f32 on a CPU. There, f32 is one of the types of all other tests.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Dims.h"
#include "test/Execution/Execution.h"
#include "test/Execution/GradExecution.h"
#include "test/Execution/Sequences.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

namespace attn::test {

static const std::vector<Extents> kExtents = {
    {0, 5}, {5, 0}, {1, 1}, {1, 129}, {129, 1}, {7, 127, 2, 4, 2}, {257, 300}, {130, 70, 1, 6, 2}};

/// How many of a list there are where the device splits f32.
static size_t countIfSplit(size_t count) {
  return llvm::is_contained(getOptions().device->getTypes(), "f32") ? 0 : count;
}

static Problem makeProblem(int64_t d, int64_t dv) {
  Problem problem;
  problem.type = "f32";
  problem.withLse = true;
  problem.d = d;
  problem.dv = dv;
  return problem;
}

//===----------------------------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------------------------===//

struct WideVariantTest : testing::TestWithParam<size_t> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WideVariantTest);

TEST_P(WideVariantTest, MatchesReference) {
  Execution().check(getVariants()[GetParam()], makeProblem(64, 64), kExtents);
}

INSTANTIATE_TEST_SUITE_P(All, WideVariantTest,
                         testing::Range<size_t>(0, countIfSplit(getVariants().size())),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return getVariants()[info.param].name;
                         });

static std::vector<Dims> getDims() {
  std::vector<Dims> dims = {{8, 8},     {40, 40},   {80, 80},  {128, 128}, {192, 128},
                            {256, 256}, {136, 120}, {64, 128}, {128, 64}};
  dims.resize(countIfSplit(dims.size()));
  return dims;
}

struct WideDimsTest : testing::TestWithParam<Dims> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WideDimsTest);

TEST_P(WideDimsTest, MatchesReference) {
  Problem problem = makeProblem(GetParam().first, GetParam().second);
  Execution().check(kCausal, problem, {{1, 1}, {129, 127}, {127, 257}});
  Execution().check(kFull, problem, {{1, 1}, {129, 127}, {127, 257}});
}

TEST_P(WideDimsTest, PartsOfKeys) {
  Problem problem = makeProblem(GetParam().first, GetParam().second);
  problem.splits = 3;
  Execution().check(kCausal, problem, {{1, 1}, {3, 600, 1, 2, 1}, {127, 257}});
}

INSTANTIATE_TEST_SUITE_P(All, WideDimsTest, testing::ValuesIn(getDims()), nameDims);

//===----------------------------------------------------------------------------------------===//
// Views and strides
//===----------------------------------------------------------------------------------------===//

TEST(WideElementsTest, PackedHeads) {
  if (!countIfSplit(1))
    GTEST_SKIP() << "f32 has products of its own";
  Problem problem = makeProblem(64, 64);
  problem.slots = 8;
  for (int64_t splits : {1, 3}) {
    problem.splits = splits;
    for (const Variant &variant : {kFull, kCausal})
      Execution().check(variant, problem, {{1, 300, 2, 8, 2}, {7, 200, 1, 6, 2}, {3, 2, 1, 4, 4}});
  }
}

TEST(WideElementsTest, Sequences) {
  if (!countIfSplit(1))
    GTEST_SKIP() << "f32 has products of its own";
  Problem problem = makeProblem(64, 64);
  problem.isRagged = true;
  std::vector<Sequences> sequences = {
      {{0, 0, 5, 75, 78}, {0, 9, 9, 40, 190}, 90, 200, 70, 150, 4, 2, 3}};
  for (const Variant &variant : {kFull, kCausal}) {
    Execution().checkRagged(variant, problem, sequences);
    GradExecution().checkRagged(variant, problem, sequences);
  }
}

TEST(WideElementsTest, AnyStrides) {
  if (!countIfSplit(1))
    GTEST_SKIP() << "f32 has products of its own";
  for (Memory memory : {Memory::RowsFirst, Memory::Random}) {
    Problem problem = makeProblem(64, 64);
    problem.memory = memory;
    Execution().check(kCausal, problem, kExtents);
    GradExecution().check(kCausal, problem, kExtents);
  }
}

//===----------------------------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------------------------===//

struct WideGradTest : testing::TestWithParam<size_t> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WideGradTest);

TEST_P(WideGradTest, MatchesReference) {
  GradExecution().check(getVariantsAndMasks()[GetParam()], makeProblem(64, 64), kExtents);
}

INSTANTIATE_TEST_SUITE_P(All, WideGradTest,
                         testing::Range<size_t>(0, countIfSplit(getVariantsAndMasks().size())),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return getVariantsAndMasks()[info.param].name;
                         });

struct WideGradDimsTest : testing::TestWithParam<Dims> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WideGradDimsTest);

TEST_P(WideGradDimsTest, MatchesReference) {
  Problem problem = makeProblem(GetParam().first, GetParam().second);
  GradExecution().check(kCausal, problem, {{1, 1}, {129, 127}, {127, 257, 1, 6, 1}});
  GradExecution().check(kFull, problem, {{1, 1}, {129, 127}, {127, 257, 1, 6, 1}});
}

static std::vector<Dims> getGradDims() {
  std::vector<Dims> dims = {{8, 8},    {40, 40},  {80, 80},  {128, 128},
                            {64, 128}, {128, 64}, {192, 192}};
  dims.resize(countIfSplit(dims.size()));
  return dims;
}

INSTANTIATE_TEST_SUITE_P(All, WideGradDimsTest, testing::ValuesIn(getGradDims()), nameDims);

} // namespace attn::test
