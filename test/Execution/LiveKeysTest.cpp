//===- LiveKeysTest.cpp - parts of the keys that a mask keeps, with numbers -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Caches that have room for more keys than sequences have. Lengths are any numbers: a wrong one
// gives a wrong result of its own sequence and touches nothing else, which guards around the
// tensors see.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/Main.h"
#include "gtest/gtest.h"

namespace attn::test {
namespace {

/// A mask of `%n`, `%m` and the length `%len` of the sequence, that keeps where `%keep` holds.
std::string makeMask(const std::string &text) {
  return "mask(%b, %h, %m, %n) {\n"
         "    %length = tensor.extract %lengths[%b] : tensor<?xi32>\n"
         "    %len = arith.index_cast %length : i32 to index\n" +
         text + "    attn.yield %keep : i1\n  }";
}

const std::string kBelow = "    %keep = arith.cmpi slt, %n, %len : index\n";
/// The last 100 keys of the sequence.
const std::string kNear = "    %c100 = arith.constant 100 : index\n"
                          "    %low = arith.subi %len, %c100 : index\n"
                          "    %live = arith.cmpi slt, %n, %len : index\n"
                          "    %near = arith.cmpi sge, %n, %low : index\n";

std::vector<Variant> getLiveMasks() {
  return {
      {"KeyLength", "variants [#attn.key_length] captures(%lengths : tensor<?xi32>)", {kLengths}},
      {"LeftPadding", makeMask("    %keep = arith.cmpi sge, %n, %len : index\n"), {kLengths}},
      {"Window", makeMask(kNear + "    %keep = arith.andi %near, %live : i1\n"), {kLengths}},
      {"FirstAndWindow",
       makeMask(kNear + "    %c4 = arith.constant 4 : index\n"
                        "    %first = arith.cmpi slt, %n, %c4 : index\n"
                        "    %some = arith.ori %first, %near : i1\n"
                        "    %keep = arith.andi %some, %live : i1\n"),
       {kLengths}},
      // Causal from the end of the sequence, of which the call has the last two rows.
      {"CausalFromEnd",
       makeMask("    %c2 = arith.constant 2 : index\n"
                "    %end = arith.addi %m, %len : index\n"
                "    %last = arith.subi %end, %c2 : index\n"
                "    %keep = arith.cmpi sle, %n, %last : index\n"),
       {kLengths}},
      {"Sink", "sink(%sink : tensor<?xf32>) " + makeMask(kBelow), {kLengths, kSink}},
      {"Alibi",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %slope = tensor.extract %slopes[%h] : tensor<?xf32>\n"
       "    %i = arith.index_cast %n : index to i32\n    %f = arith.sitofp %i : i32 to f32\n"
       "    %x = arith.mulf %slope, %f : f32\n    %t = arith.addf %s, %x : f32\n"
       "    attn.yield %t : f32\n  } " +
           makeMask(kBelow),
       {kLengths, kSlopes}},
  };
}

struct LiveKeysTest : testing::TestWithParam<size_t> {
  const Variant variant = getLiveMasks()[GetParam()];

  /// With lengths from the list, from `first` on.
  void check(const Problem &problem, const std::vector<Extents> &extents) {
    Execution execution;
    size_t next = GetParam();
    execution.edit = [&](std::vector<Input> &inputs) {
      Array &lengths = inputs[3].array;
      double n = double(inputs[1].array.getShape()[2]);
      const double lengthsOf[] = {n / 16,        n,           1, -5, n + 1000, 0, n / 2,
                                  -2147483648.0, 2147483647.0};
      for (int64_t b = 0; b < lengths.size(); ++b)
        lengths.set(b, std::trunc(lengthsOf[next++ % std::size(lengthsOf)]));
    };
    execution.check(variant, problem, extents);
  }

  Problem makeProblem() const {
    Problem problem;
    problem.type = GetParam() % 2 ? "f16" : "bf16";
    problem.withLse = true;
    problem.withLow = GetParam() % 3 == 2;
    return problem;
  }
};

/// Nine batches take each length once, and heads are rows.
TEST_P(LiveKeysTest, PackedParts) {
  Problem problem = makeProblem();
  problem.slots = 8;
  problem.splits = 5;
  check(problem, {{1, 1500, 9, 8, 1}, {2, 700, 9, 4, 2}, {2, 100, 9, 3, 1}});
}

/// As many parts as three multiprocessors take, of one sequence each.
TEST_P(LiveKeysTest, PartsThatFill) {
  Problem problem = makeProblem();
  problem.slots = 8;
  problem.fills = true;
  std::vector<Extents> extents(9, {1, 1500, 1, 8, 1});
  extents.push_back({2, 3000, 2, 5, 1});
  check(problem, extents);
}

/// Sequences get parts by their lengths: those of one call, and of many.
TEST_P(LiveKeysTest, PartsByLength) {
  Problem problem = makeProblem();
  problem.slots = 8;
  problem.fills = true;
  problem.balances = true;
  check(problem, {{1, 1500, 9, 8, 1}, {1, 4000, 1, 8, 1}, {2, 3000, 3, 10, 2}, {1, 900, 70, 2, 1}});
}

/// Heads that are not packed, in tiles of 128 rows.
TEST_P(LiveKeysTest, Parts) {
  Problem problem = makeProblem();
  problem.splits = 3;
  check(problem, {{2, 700, 9, 2, 1}, {150, 600, 3, 1, 1}});
}

INSTANTIATE_TEST_SUITE_P(All, LiveKeysTest, testing::Range<size_t>(0, getLiveMasks().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return getLiveMasks()[info.param].name;
                         });

} // namespace
} // namespace attn::test
