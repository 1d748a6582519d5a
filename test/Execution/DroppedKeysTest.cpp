//===- DroppedKeysTest.cpp - keys that no row keeps -------------------------------------------
//-===//
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

/// Masks of users: in parts that heads of one key head share, nested, and by what a tensor holds.
static std::vector<Variant> getUserMasks() {
  return {
      {"EveryThird", "mask(%b, %h, %m, %n) {\n"
                     "    %c3 = arith.constant 3 : index\n    %c1 = arith.constant 1 : index\n"
                     "    %r = arith.remui %n, %c3 : index\n"
                     "    %keep = arith.cmpi eq, %r, %c1 : index\n    attn.yield %keep : i1\n  }"},
      {"Nested",
       "mask(%b, %h, %m, %n) {\n"
       "    %c20 = arith.constant 20 : index\n    %c90 = arith.constant 90 : index\n"
       "    %c110 = arith.constant 110 : index\n    %first = arith.cmpi slt, %n, %c20 : index\n"
       "    %from = arith.cmpi sge, %n, %c90 : index\n"
       "    %to = arith.cmpi slt, %n, %c110 : index\n"
       "    %second = arith.andi %from, %to : i1\n    %some = arith.ori %first, %second : i1\n"
       "    %is = arith.cmpi eq, %n, %m : index\n    %keep = arith.xori %some, %is : i1\n"
       "    attn.yield %keep : i1\n  }"},
      {"ByHead", "mask(%b, %h, %m, %n) {\n"
                 "    %c60 = arith.constant 60 : index\n    %c9 = arith.constant 9 : index\n"
                 "    %s = arith.muli %h, %c9 : index\n    %e = arith.addi %s, %c60 : index\n"
                 "    %from = arith.cmpi sge, %n, %s : index\n"
                 "    %to = arith.cmpi slt, %n, %e : index\n"
                 "    %keep = arith.andi %from, %to : i1\n    attn.yield %keep : i1\n  }"},
      {"ByTensor",
       "mask(%b, %h, %m, %n) {\n"
       "    %c2 = arith.constant 2 : i32\n"
       "    %id = tensor.extract %ids_k[%b, %n] : tensor<?x?xi32>\n"
       "    %keep = arith.cmpi ne, %id, %c2 : i32\n    attn.yield %keep : i1\n  }",
       {kKeyIds}},
      {"ScoreDropsKeys",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %ninf = arith.constant 0xFF800000 : f32\n    %c40 = arith.constant 40 : index\n"
       "    %drop = arith.cmpi sge, %n, %c40 : index\n"
       "    %t = arith.select %drop, %ninf, %s : f32\n    attn.yield %t : f32\n  }"},
  };
}

static std::vector<Variant> getAllMasks() {
  std::vector<Variant> variants = getVariants();
  for (Variant &variant : getUserMasks())
    variants.push_back(std::move(variant));
  return variants;
}

struct DroppedKeysTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(DroppedKeysTest, HoldAnything) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.withLse = true;
  Variant variant = getAllMasks()[index];
  Execution().checkDroppedKeys(variant, problem, kExtents);
  problem.splits = 3;
  problem.dv = 48;
  Execution().checkDroppedKeys(variant, problem, {{7, 300}});
}

static std::string nameMask(const testing::TestParamInfo<DroppedKeysTest::ParamType> &info) {
  return getAllMasks()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, DroppedKeysTest,
                         testing::Combine(testing::Range<size_t>(0, getAllMasks().size()),
                                          testing::ValuesIn(getOptions().device->getTypes())),
                         nameMask);

/// Without a dropped key the tests above would say nothing.
TEST(DroppedKeys, AreFound) {
  std::vector<Variant> variants = getAllMasks();
  for (const char *name : {"CausalTopLeft", "KeyLength", "Nested", "ByHead", "Window",
                           "DocumentUnknown", "Undecidable", "ScoreDropsKeys"}) {
    auto variant = llvm::find_if(variants, [&](const Variant &v) { return v.name == name; });
    Problem problem;
    problem.type = getOptions().device->getTypes().front();
    Execution execution;
    execution.checkDroppedKeys(*variant, problem, {{7, 129}, {3, 260}});
    if (execution.numRuns > 0)
      EXPECT_GT(execution.numDropped, 0) << name;
  }
}

} // namespace attn::test
