//===- DroppedKeysTest.cpp - keys that no row keeps -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The contract's s6: what a key that no row of its batch and key head keeps holds is not read into
// a sum. Such keys lie behind the last one that is kept (lengths, more keys than rows), before the
// first (windows) and between (documents, masks of users).
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "gtest/gtest.h"

namespace attn::test {

static const std::vector<Extents> kExtents = {{1, 7},     {7, 129},          {129, 7},
                                              {127, 130}, {1, 127, 2, 4, 2}, {64, 129, 1, 6, 3}};

struct DroppedKeysTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(DroppedKeysTest, HoldAnything) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.withLse = true;
  Variant variant = getVariantsAndMasks()[index];
  Execution().checkDroppedKeys(variant, problem, kExtents);
  problem.splits = 3;
  problem.dv = 48;
  Execution().checkDroppedKeys(variant, problem, {{7, 300}});
}

static std::string nameMask(const testing::TestParamInfo<DroppedKeysTest::ParamType> &info) {
  return getVariantsAndMasks()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, DroppedKeysTest,
                         testing::Combine(testing::Range<size_t>(0, getVariantsAndMasks().size()),
                                          testing::ValuesIn(getOptions().device->getTypes())),
                         nameMask);

/// With as many rows as keys no key is dropped, and nothing is cleared; with fewer, some are.
struct OwnIdsTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(OwnIdsTest, HoldAnythingWhereRowsAreFewer) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.withLse = true;
  Variant variant = getOwnIds()[index];
  Execution execution;
  execution.checkDroppedKeys(variant, problem, {{1, 7}, {7, 129}, {64, 300, 1, 6, 3}});
  if (execution.numRuns > 0)
    EXPECT_GT(execution.numDropped, 0);
  execution.check(variant, problem, {{1, 1}, {129, 129}, {260, 260, 1, 4, 2}, {127, 128}});
}

static std::string nameOwnIds(const testing::TestParamInfo<OwnIdsTest::ParamType> &info) {
  return getOwnIds()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, OwnIdsTest,
                         testing::Combine(testing::Range<size_t>(0, getOwnIds().size()),
                                          testing::ValuesIn(getOptions().device->getTypes())),
                         nameOwnIds);

/// Without a dropped key the tests above would say nothing.
TEST(DroppedKeys, AreFound) {
  for (const char *name : {"CausalTopLeft", "KeyLength", "Nested", "ByHead", "Window",
                           "DocumentUnknown", "Undecidable", "ScoreDropsKeys"}) {
    Problem problem;
    problem.type = getOptions().device->getTypes().front();
    Execution execution;
    execution.checkDroppedKeys(getVariant(name), problem, {{7, 129}, {3, 260}});
    if (execution.numRuns > 0)
      EXPECT_GT(execution.numDropped, 0) << name;
  }
}

} // namespace attn::test
