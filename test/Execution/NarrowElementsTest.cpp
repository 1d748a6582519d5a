//===- NarrowElementsTest.cpp - elements of 8 bits with scales --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A CPU widens them, and its bounds are those of f32. Products of a GPU multiply them as they are,
// and weights are rounded to 8 bits.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Dims.h"
#include "test/Execution/Execution.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

namespace attn::test {

static const std::vector<Extents> kExtents = {
    {0, 5}, {5, 0}, {1, 1}, {1, 129}, {129, 1}, {7, 127, 2, 4, 2}, {257, 300}, {130, 70, 1, 6, 2}};

static size_t countIfNarrow(size_t count) { return getOptions().device->takesNarrow() ? count : 0; }

static Problem makeProblem(int64_t d, int64_t dv, const char *narrow = "f8E4M3FN") {
  Problem problem;
  problem.type = "f32";
  problem.narrow = narrow;
  problem.scales = Scales::Heads;
  problem.withLse = true;
  problem.d = d;
  problem.dv = dv;
  return problem;
}

/// Factors of single weights have no bound, which 8 bits need.
static std::vector<Variant> getNarrowVariants() {
  std::vector<Variant> variants = getVariantsAndMasks();
  llvm::erase_if(variants, [](const Variant &variant) { return variant.hasFactors(); });
  variants.resize(countIfNarrow(variants.size()));
  return variants;
}

struct NarrowVariantTest : testing::TestWithParam<size_t> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NarrowVariantTest);

TEST_P(NarrowVariantTest, MatchesReference) {
  Execution().check(getNarrowVariants()[GetParam()], makeProblem(64, 64), kExtents);
}

INSTANTIATE_TEST_SUITE_P(All, NarrowVariantTest,
                         testing::Range<size_t>(0, getNarrowVariants().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return getNarrowVariants()[info.param].name;
                         });

static std::vector<Dims> getDims() {
  std::vector<Dims> dims = {{16, 16},   {48, 48},   {80, 80},  {128, 128}, {192, 128},
                            {256, 256}, {144, 112}, {64, 128}, {128, 64}};
  dims.resize(countIfNarrow(dims.size()));
  return dims;
}

struct NarrowDimsTest : testing::TestWithParam<Dims> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NarrowDimsTest);

TEST_P(NarrowDimsTest, MatchesReference) {
  for (const char *narrow : {"f8E4M3FN", "f8E5M2"}) {
    Problem problem = makeProblem(GetParam().first, GetParam().second, narrow);
    for (const Variant &variant : {kFull, kCausal})
      Execution().check(variant, problem, {{1, 1}, {129, 127}, {127, 257}});
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowDimsTest, testing::ValuesIn(getDims()), nameDims);

TEST(NarrowElementsTest, AnyScales) {
  if (!countIfNarrow(1))
    GTEST_SKIP() << "no products of 8 bits";
  Problem problem = makeProblem(64, 64);
  for (Scales scales : {Scales::None, Scales::Tensor, Scales::Blocks}) {
    problem.scales = scales;
    for (const Variant &variant : {kFull, kCausal})
      Execution().check(variant, problem, {{1, 1}, {129, 127}, {127, 257, 2, 4, 2}});
  }
}

TEST(NarrowElementsTest, AnyOutput) {
  if (!countIfNarrow(1))
    GTEST_SKIP() << "no products of 8 bits";
  for (const char *type : {"f16", "bf16"}) {
    Problem problem = makeProblem(128, 128);
    problem.type = type;
    Execution().check(kCausal, problem, {{129, 127}, {127, 257, 2, 4, 2}});
  }
}

TEST(NarrowElementsTest, PartsOfKeys) {
  if (!countIfNarrow(1))
    GTEST_SKIP() << "no products of 8 bits";
  Problem problem = makeProblem(64, 64);
  problem.splits = 3;
  for (const Variant &variant : {kFull, kCausal})
    Execution().check(variant, problem, {{1, 1}, {3, 600, 1, 2, 1}, {127, 257}});
}

TEST(NarrowElementsTest, AnyStrides) {
  if (!countIfNarrow(1))
    GTEST_SKIP() << "no products of 8 bits";
  for (Memory memory : {Memory::RowsFirst, Memory::Random}) {
    Problem problem = makeProblem(64, 64);
    problem.memory = memory;
    Execution().check(kCausal, problem, kExtents);
  }
}

} // namespace attn::test
