//===- ExecutionTest.cpp - the acceptance list ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Each problem (a variant, a type, D, Dv) is compiled once for the device and once as the
// reference, and run with every choice of extents on fresh random inputs, into outputs poisoned
// with NaN.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace attn::test {

/// M != N both ways, single rows and keys, one below and one above the tiles, nothing at all.
static const std::vector<Extents> kExtentsAll = {
    {0, 5},     {5, 0},     {0, 0},    {1, 1},     {1, 129},    {129, 1},    {7, 127},  {127, 7},
    {128, 128}, {129, 128}, {64, 192}, {128, 129}, {1000, 129}, {129, 1000}, {300, 300}};
static const std::vector<Extents> kExtentsFew = {{1, 1}, {129, 127}, {127, 257}, {257, 257}};

static std::vector<std::string> getTypes() { return getOptions().device->getTypes(); }

/// Types to test besides the one that tests most.
static std::vector<std::string> getTwoTypes() {
  std::vector<std::string> types = getTypes();
  types.resize(2);
  return types;
}

//===----------------------------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------------------------===//

struct VariantTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(VariantTest, MatchesReference) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.withLse = true;
  Execution execution;
  execution.check(getVariants()[index], problem, kExtentsAll);
  EXPECT_EQ(execution.numCompiles, 1);
}

static std::string nameVariant(const testing::TestParamInfo<VariantTest::ParamType> &info) {
  return getVariants()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         testing::Combine(testing::Range<size_t>(0, getVariants().size()),
                                          testing::ValuesIn(getTypes())),
                         nameVariant);

//===----------------------------------------------------------------------------------------===//
// Head dimensions
//===----------------------------------------------------------------------------------------===//

using Dims = std::pair<int64_t, int64_t>;

static std::vector<Dims> getDims() {
  std::vector<Dims> dims = {{16, 16},   {40, 40},   {64, 64},   {72, 72},   {80, 80},
                            {96, 96},   {112, 112}, {128, 128}, {192, 192}, {256, 256},
                            {192, 128}, {64, 256},  {128, 64},  {8, 8},     {136, 120}};
  if (getOptions().device->getColumnMultiple() == 1)
    dims.insert(dims.end(), {{33, 17}, {1, 1}});
  return dims;
}

struct HeadDimTest : testing::TestWithParam<std::tuple<Dims, std::string>> {};

TEST_P(HeadDimTest, MatchesReference) {
  auto [dims, type] = GetParam();
  Problem problem;
  problem.type = type;
  std::tie(problem.d, problem.dv) = dims;
  Execution execution;
  execution.check(kCausal, problem, kExtentsFew);
  execution.check(kFull, problem, kExtentsFew);
}

static std::string nameDims(const testing::TestParamInfo<HeadDimTest::ParamType> &info) {
  auto [dims, type] = info.param;
  return llvm::formatv("D{0}_Dv{1}_{2}", dims.first, dims.second, type).str();
}

INSTANTIATE_TEST_SUITE_P(All, HeadDimTest,
                         testing::Combine(testing::ValuesIn(getDims()),
                                          testing::ValuesIn(getTypes())),
                         nameDims);

//===----------------------------------------------------------------------------------------===//
// Ways
//===----------------------------------------------------------------------------------------===//

/// Kernels for short sequences, for long ones, for few rows and for few keys, on GPUs: each with
/// all extents, whichever of them a call of such extents would take.
struct WayTest : testing::TestWithParam<std::tuple<std::string, Dims, std::string>> {};

TEST_P(WayTest, MatchesReference) {
  Problem problem;
  problem.withLse = true;
  Dims dims;
  std::tie(problem.way, dims, problem.type) = GetParam();
  std::tie(problem.d, problem.dv) = dims;
  Execution().check(kCausal, problem, kExtentsAll);
  Execution().check(kFull, problem, kExtentsAll);
}

static std::string nameWay(const testing::TestParamInfo<WayTest::ParamType> &info) {
  auto [way, dims, type] = info.param;
  return llvm::formatv("{0}_D{1}_Dv{2}_{3}", way, dims.first, dims.second, type).str();
}

INSTANTIATE_TEST_SUITE_P(All, WayTest,
                         testing::Combine(testing::Values("short", "long", "few", "narrow"),
                                          testing::Values(Dims(64, 64), Dims(16, 40),
                                                          Dims(128, 128), Dims(96, 80),
                                                          Dims(64, 128), Dims(256, 256)),
                                          testing::ValuesIn(getTwoTypes())),
                         nameWay);

/// A call on either side of the bounds takes either kernel of one program.
TEST(ExecutionTest, ShortAndLong) {
  for (int64_t d : {64, 128, 256}) {
    Problem problem;
    problem.type = getTwoTypes().front();
    problem.d = problem.dv = d;
    std::vector<Extents> extents = {
        {1024, 1024, 1, 1, 1}, {1024, 1025, 1, 1, 1}, {1025, 1024, 1, 1, 1}, {130, 2048, 1, 1, 1},
        {130, 2049, 1, 1, 1},  {130, 768, 1, 1, 1},   {130, 769, 1, 1, 1},   {2500, 130, 1, 1, 1}};
    Execution().check(kCausal, problem, extents);
    Execution().check(kFull, problem, extents);
  }
}

/// The kernel of a way serves all calls, those that it is not for too.
static void checkWay(llvm::StringRef way, llvm::ArrayRef<Dims> heads,
                     const std::vector<Extents> &extents) {
  for (auto [d, dv] : heads) {
    Problem problem;
    problem.type = getTwoTypes().front();
    problem.way = way.str();
    problem.withLse = true;
    problem.d = d;
    problem.dv = dv;
    Execution().check(kFull, problem, extents);
  }
}

/// With one tile of rows and with more.
TEST(ExecutionTest, FewRows) {
  std::vector<Extents> extents;
  for (int64_t m : {0, 1, 7, 127, 128, 129})
    for (int64_t n : {0, 1, 127, 2049})
      extents.push_back({m, n, 1, 2, 1});
  checkWay("few", {{64, 64}, {40, 40}, {128, 128}, {80, 112}}, extents);
}

/// With a tile of keys or two, and with more.
TEST(ExecutionTest, FewKeys) {
  std::vector<Extents> extents;
  for (int64_t m : {1, 257, 385})
    for (int64_t n : {0, 1, 77, 80, 154, 241})
      extents.push_back({m, n, 2, 2, 1});
  checkWay("narrow", {{64, 64}, {40, 128}, {128, 128}, {192, 128}, {256, 256}}, extents);
}

//===----------------------------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------------------------===//

TEST(ExecutionTest, GroupedHeads) {
  std::vector<Extents> extents;
  for (auto [heads, keyHeads] :
       {std::pair(8, 1), std::pair(8, 8), std::pair(16, 2), std::pair(6, 3)}) {
    extents.push_back({7, 33, 2, heads, keyHeads});
    extents.push_back({129, 127, 2, heads, keyHeads});
  }
  for (const std::string &type : getTwoTypes()) {
    Problem problem;
    problem.type = type;
    Execution().check(kCausal, problem, extents);
  }
}

TEST(ExecutionTest, StridedLayout) {
  for (const std::string &type : getTypes())
    for (Memory memory : {Memory::RowsFirst, Memory::Random}) {
      Problem problem;
      problem.type = type;
      problem.memory = memory;
      problem.withLse = true;
      Execution().check(kCausal, problem, kExtentsFew);
    }
}

TEST(ExecutionTest, BlockSizes) {
  // The device is a temporary's owner: name it, so that the range outlives the loop.
  std::vector<std::pair<int64_t, int64_t>> sizes = getOptions().device->getBlockSizes();
  for (auto [m, n] : sizes) {
    Problem problem;
    problem.type = getTypes().front();
    problem.blockM = m;
    problem.blockN = n;
    Execution().check(kCausal, problem, kExtentsFew);
  }
}

struct SplitKeysTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(SplitKeysTest, MatchesReference) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.splits = 3;
  problem.withLse = true;
  Execution().check(getVariants()[index], problem, {{1, 1000}, {129, 300}, {5, 2}});
}

INSTANTIATE_TEST_SUITE_P(All, SplitKeysTest,
                         testing::Combine(testing::Range<size_t>(0, getVariants().size()),
                                          testing::ValuesIn(getTwoTypes())),
                         nameVariant);

TEST(ExecutionTest, LongSequences) {
  for (const std::string &type : getTwoTypes()) {
    Problem problem;
    problem.type = type;
    Execution().check(
        kCausal, problem,
        {{4096, 4096, 2, 1, 1}, {1, 4096, 2, 1, 1}, {4096, 127, 2, 1, 1}, {1000, 4096, 2, 1, 1}});
  }
}

} // namespace attn::test
