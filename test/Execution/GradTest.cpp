//===- GradTest.cpp - gradients of the acceptance list --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/GradExecution.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace attn::test {

/// M != N both ways, single rows and keys, one below and one above the tiles, nothing at all;
/// groups of 1, 2 and 6 heads.
static const std::vector<Extents> kExtents = {{0, 5},
                                              {5, 0},
                                              {0, 0},
                                              {1, 1},
                                              {1, 129},
                                              {129, 1},
                                              {7, 127, 2, 4, 2},
                                              {127, 7},
                                              {129, 128, 1, 6, 1},
                                              {113, 211},
                                              {200, 113},
                                              {300, 300, 1, 2, 2}};
static const std::vector<Extents> kFew = {{1, 1}, {129, 127}, {127, 257, 1, 6, 1}, {257, 129}};

static std::vector<std::string> getTypes() { return getOptions().device->getTypes(); }

struct GradTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(GradTest, MatchesReference) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  // With the gradient of lse in one type, without it in the others.
  problem.withLse = type == getTypes().front();
  GradExecution().check(getVariants()[index], problem, kExtents);
}

static std::string nameVariant(const testing::TestParamInfo<GradTest::ParamType> &info) {
  return getVariants()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, GradTest,
                         testing::Combine(testing::Range<size_t>(0, getVariants().size()),
                                          testing::ValuesIn(getTypes())),
                         nameVariant);

using Dims = std::pair<int64_t, int64_t>;

struct GradHeadDimTest : testing::TestWithParam<std::tuple<Dims, std::string>> {};

TEST_P(GradHeadDimTest, MatchesReference) {
  auto [dims, type] = GetParam();
  Problem problem;
  problem.type = type;
  std::tie(problem.d, problem.dv) = dims;
  GradExecution().check(kCausal, problem, kFew);
}

TEST_P(GradHeadDimTest, MatchesReferenceInAnyMemory) {
  auto [dims, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.memory = Memory::Random;
  std::tie(problem.d, problem.dv) = dims;
  std::tie(problem.blockM, problem.blockN) = getOptions().device->getSmallGradBlock(problem);
  GradExecution().check(kFull, problem, kFew);
}

static std::string nameDims(const testing::TestParamInfo<GradHeadDimTest::ParamType> &info) {
  auto [dims, type] = info.param;
  return llvm::formatv("D{0}_Dv{1}_{2}", dims.first, dims.second, type).str();
}

static std::vector<Dims> getDims() {
  std::vector<Dims> dims = {{8, 8}, {40, 64}, {96, 96}, {128, 128}, {192, 128}, {256, 256}};
  if (getOptions().device->getColumnMultiple() == 1)
    dims.insert(dims.end(), {{33, 17}, {1, 1}});
  return dims;
}

static std::vector<std::string> getTwoTypes() {
  std::vector<std::string> types = getTypes();
  types.resize(2);
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, GradHeadDimTest,
                         testing::Combine(testing::ValuesIn(getDims()),
                                          testing::ValuesIn(getTwoTypes())),
                         nameDims);

} // namespace attn::test
