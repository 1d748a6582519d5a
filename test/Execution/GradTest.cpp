//===- GradTest.cpp - gradients of the acceptance list --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

//
// What bit others, and which test would find it:
//
//   rows that keep no key               KeepsNothing, CausalTopLeft with M > N
//   keys behind the last, lse of -100   GradOddTest.LowScores
//   rows of -1e9, or 1e9, alone         GradOddTest.LargeScores
//   padding of lse that is not set      GuardedTensor: NaN around and between; {1, 129}
//   base and layout of lse              each: lse is the reference's, in base e
//   d_output of any strides             test_any_gradient_of_the_output, InAnyMemory
//   sequences without keys or rows      GradOddTest.EmptySequences, KeyLength, {5, 0}
//   softcap before a mask               Softcap, SoftcapCausal, ScoreDropsAll
//   gradient of lse dropped             each in its first type
//   gradient of a sink                  Sink, SinkCausal, SinkKeepsNothing, with groups
//   (192, 128) and D = 256              GradHeadDimTest, with batches of 2
//   heads, D and Dv mixed up            (40, 64) and (192, 128) with groups of 6
//   captured tensors, odd lengths       TrainedScoreTest
//   captured tensors, a rounded output  GradOddTest.FarRowsOfFewKeys, each in 16 bits
//   shared memory beyond D = 128        GradHeadDimTest, GradWideTest
//   different bits each time            each with dropped keys runs twice; test_gradient.py
//   memory that grows with M x N        AttnToTile/gradients.mlir: scratch is like lse
//   reading outside of tensors          GuardedTensor
//   a schedule that breaks one D        GradHeadDimTest, kernel_hashes.py
//
// And at random: RandomGradTest, and RandomLargeGradTest of scores up to 1e9.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/GradExecution.h"
#include "llvm/ADT/STLExtras.h"
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
  GradExecution().check(getVariantsAndMasks()[index], problem, kExtents);
}

static std::string nameVariant(const testing::TestParamInfo<GradTest::ParamType> &info) {
  return getVariantsAndMasks()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, GradTest,
                         testing::Combine(testing::Range<size_t>(0, getVariantsAndMasks().size()),
                                          testing::ValuesIn(getTypes())),
                         nameVariant);

struct TrainedScoreTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(TrainedScoreTest, MatchesReference) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.d = problem.dv = 16;
  GradExecution().check(getTrainedScores()[index], problem,
                        {{0, 5}, {5, 0}, {1, 1}, {7, 127, 2, 4, 2}, {129, 65, 3, 2, 1}, {70, 200}});
}

static std::string nameScore(const testing::TestParamInfo<TrainedScoreTest::ParamType> &info) {
  return getTrainedScores()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, TrainedScoreTest,
                         testing::Combine(testing::Range<size_t>(0, getTrainedScores().size()),
                                          testing::ValuesIn(getTypes())),
                         nameScore);

/// A log-sum-exp near -110: what a key that is not there would weigh overflows.
TEST(GradOddTest, LowScores) {
  Variant variant = {"LowScores", "score(%s, %b, %h, %m, %n) {\n"
                                  "    %c = arith.constant 110.0 : f32\n"
                                  "    %t = arith.subf %s, %c : f32\n    attn.yield %t : f32\n  }"};
  for (const std::string &type : getTypes()) {
    Problem problem;
    problem.type = type;
    GradExecution().check(variant, problem, {{1, 1}, {1, 64}, {192, 65}, {64, 192}, {129, 216}});
  }
}

/// Rows whose greatest scores f32 cannot tell apart, nor from their log-sum-exp: each of n such
/// keys weighs 1 / n. What products add to them is nothing, so that gradients of products are too.
/// A sink beside large negative ones would be all of the sum.
TEST(GradOddTest, LargeScores) {
  std::pair<const char *, const char *> numbersAndSinks[] = {
      {"-1048576.0", ""},
      {"-1073741824.0", ""},
      {"-8.507059173023462E+37", ""},
      {"1073741824.0", "sink(%sink : tensor<?xf32>) "}};
  for (auto [number, sink] : numbersAndSinks)
    for (const std::string &type : getTypes()) {
      std::string text = std::string(sink) +
                         "score(%s, %b, %h, %m, %n) {\n"
                         "    %tiny = arith.constant 1.0E-38 : f32\n"
                         "    %none = arith.mulf %s, %tiny : f32\n    %c = arith.constant " +
                         number +
                         " : f32\n    %t = arith.addf %none, %c : f32\n"
                         "    attn.yield %t : f32\n  }";
      Variant variant = {"LargeScores", text};
      if (*sink)
        variant.captures.push_back(kSink);
      Problem problem;
      problem.type = type;
      GradExecution().check(variant, problem, kFew);
    }
}

/// Distances that are nearly the same at all keys of a row multiply the sum of its dT.
TEST(GradOddTest, FarRowsOfFewKeys) {
  std::string alibi = "variants [#attn.alibi<bottom_right>] captures(%slopes : tensor<?xf32>)";
  for (const Variant &variant :
       {Variant{"Alibi", alibi, {kSlopes}},
        Variant{"AlibiSink", alibi + " sink(%sink : tensor<?xf32>)", {kSlopes, kSink}}})
    for (const std::string &type : getTypes()) {
      Problem problem;
      problem.type = type;
      problem.withLse = type == getTypes().front();
      GradExecution().check(variant, problem, {{799, 3, 1, 4, 4}, {300, 2, 2, 2, 1}});
    }
}

/// A batch of which one sequence has no key, and another one no row that keeps one.
TEST(GradOddTest, EmptySequences) {
  Variant variant = {"EmptySequences",
                     "mask(%b, %h, %m, %n) {\n"
                     "    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n"
                     "    %c70 = arith.constant 70 : index\n"
                     "    %isThird = arith.cmpi sgt, %b, %c1 : index\n"
                     "    %isSecond = arith.cmpi eq, %b, %c1 : index\n"
                     "    %isLate = arith.cmpi sge, %m, %c70 : index\n"
                     "    %second = arith.andi %isSecond, %isLate : i1\n"
                     "    %keep = arith.ori %isThird, %second : i1\n"
                     "    attn.yield %keep : i1\n  }"};
  for (const std::string &type : getTypes()) {
    Problem problem;
    problem.type = type;
    GradExecution().check(variant, problem, {{60, 70, 3}, {130, 65, 3, 4, 2}});
  }
}

/// Query heads of a group in parts, as calls of few blocks have them on a GPU: more parts than
/// heads, parts that divide heads and others, and groups of one.
struct GradGroupsTest : testing::TestWithParam<std::string> {};

TEST_P(GradGroupsTest, MatchesReference) {
  Variant variant = getVariant(GetParam());
  Problem problem;
  problem.way = "groups";
  problem.type = getTypes().back();
  const std::vector<Extents> groups = {{129, 128, 1, 6, 1},
                                       {7, 127, 2, 4, 2},
                                       {200, 113, 1, 7, 1},
                                       {0, 5, 1, 4, 2},
                                       {65, 300, 1, 3, 3}};
  for (int64_t d : {64, 128, 256}) {
    problem.d = problem.dv = d;
    GradExecution().check(variant, problem, groups);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradGroupsTest,
                         testing::Values("Full", "CausalBottomRight", "Window", "Softcap",
                                         "Dropout", "SinkCausal"),
                         [](const auto &info) { return info.param; });

/// Heads whose sums for keys and values are of two roles on a GPU, and those that are added to
/// gradients of queries under more masks than narrow ones: masks in each of their forms, scores
/// that need no derivative, one that does, and dropout.
struct GradWideTest : testing::TestWithParam<std::string> {};

TEST_P(GradWideTest, MatchesReference) {
  Variant variant = getVariant(GetParam());
  Problem problem;
  problem.type = "bf16";
  for (int64_t d : {128, 256}) {
    problem.d = problem.dv = d;
    GradExecution().check(variant, problem, kFew);
  }
  problem.d = 192;
  GradExecution().check(variant, problem, {{129, 127}});
  problem.d = problem.dv = 96;
  GradExecution().check(variant, problem, kFew);
}

INSTANTIATE_TEST_SUITE_P(All, GradWideTest,
                         testing::Values("Window", "WindowLeftOnly", "CausalWindow", "Prefix",
                                         "Chunked", "ChunkedCausal", "KeyLength", "DocumentCausal",
                                         "DocumentUnknown", "AlibiCausal", "RelativeBias",
                                         "AllScores", "Softcap", "SoftcapCausal", "ScoreMath",
                                         "Dropout", "SinkCausal", "EveryThird", "KeepsNothing",
                                         "ScoreDropsKeys"),
                         [](const testing::TestParamInfo<std::string> &info) {
                           return info.param;
                         });

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
