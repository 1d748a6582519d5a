//===- PackedTest.cpp - heads that share a key head as rows, with numbers -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// One to sixteen rows of groups of one to sixteen heads: those that fill a tile of 64 rows, those
// that leave slots, and those that go the other way because they do not fit. On devices that pack
// nothing they are attentions like others.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/Main.h"
#include "gtest/gtest.h"

namespace attn::test {
namespace {

const std::vector<Extents> kDecoding = {{1, 300, 2, 8, 2}, {4, 129, 2, 8, 1}, {7, 200, 1, 6, 2},
                                        {8, 700, 1, 5, 1}, {3, 2, 1, 4, 4},   {2, 65, 2, 21, 3},
                                        {16, 90, 1, 8, 1}, {1, 40, 1, 32, 2}, {5, 64, 1, 16, 2}};

struct PackedTest : testing::TestWithParam<size_t> {
  static Problem makeProblem(size_t index) {
    Problem problem;
    problem.type = index % 2 ? "f16" : "bf16";
    problem.slots = 8;
    problem.withLse = index % 3 != 0;
    problem.withLow = index % 3 == 2;
    problem.memory = index % 4 == 0   ? Memory::RowMajor
                     : index % 4 == 1 ? Memory::Random
                                      : Memory::RowsFirst;
    return problem;
  }
};

TEST_P(PackedTest, MatchesReference) {
  Execution().check(getVariantsAndMasks()[GetParam()], makeProblem(GetParam()), kDecoding);
}

TEST_P(PackedTest, MatchesReferenceInParts) {
  Problem problem = makeProblem(GetParam());
  problem.fills = true;
  Execution().check(getVariantsAndMasks()[GetParam()], problem, kDecoding);
  problem.fills = false;
  problem.splits = 3;
  Execution().check(getVariantsAndMasks()[GetParam()], problem, kDecoding);
}

INSTANTIATE_TEST_SUITE_P(All, PackedTest, testing::Range<size_t>(0, getVariantsAndMasks().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return getVariantsAndMasks()[info.param].name;
                         });

TEST(ExecutionPackedTest, Slots) {
  for (int64_t slots : {2, 4, 16, 64}) {
    Problem problem;
    problem.type = "bf16";
    problem.slots = slots;
    problem.withLse = true;
    Execution().check(kCausal, problem,
                      {{1, 200, 2, slots, 1},
                       {64 / slots, 130, 1, 2 * slots - 2, 2},
                       {64 / slots + 1, 70, 1, slots, 1},
                       {1, 70, 1, slots + 1, 1},
                       {3, 700, 1, 2, 2},
                       {0, 20, 1, 4, 2},
                       {3, 0, 1, 4, 2},
                       {2, 9, 0, 4, 2}});
  }
}

TEST(ExecutionPackedTest, HeadDims) {
  for (auto [d, dv] : {std::pair(64, 64), std::pair(256, 256), std::pair(192, 128),
                       std::pair(72, 40), std::pair(16, 16), std::pair(96, 96)}) {
    Problem problem;
    problem.type = "f16";
    problem.slots = 4;
    std::tie(problem.d, problem.dv) = std::pair<int64_t, int64_t>(d, dv);
    Execution().check(kCausal, problem, {{1, 300, 2, 8, 2}, {13, 130, 1, 3, 1}});
  }
}

} // namespace
} // namespace attn::test
