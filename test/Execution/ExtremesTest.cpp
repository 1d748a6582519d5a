//===- ExtremesTest.cpp - scores and sinks at the ends of f32 ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "gtest/gtest.h"

namespace attn::test {

static const std::vector<Extents> kExtents = {{1, 1}, {7, 129}, {129, 127}, {257, 300}};

/// Masks written as the lowest finite number, and scores that are too large for base 2.
static std::vector<Variant> getExtremeScores() {
  return {
      {"SelectsLowest",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %min = arith.constant -3.40282347E+38 : f32\n"
       "    %near = arith.cmpi slt, %n, %m : index\n"
       "    %t = arith.select %near, %s, %min : f32\n    attn.yield %t : f32\n  }"},
      {"AddsLowest", "score(%s, %b, %h, %m, %n) {\n"
                     "    %min = arith.constant -3.40282347E+38 : f32\n"
                     "    %zero = arith.constant 0.0 : f32\n"
                     "    %near = arith.cmpi slt, %n, %m : index\n"
                     "    %bias = arith.select %near, %zero, %min : f32\n"
                     "    %t = arith.addf %s, %bias : f32\n    attn.yield %t : f32\n  }"},
      {"MultipliesLowest", "score(%s, %b, %h, %m, %n) {\n"
                           "    %min = arith.constant -3.40282347E+38 : f32\n"
                           "    %far = arith.cmpi sge, %n, %m : index\n"
                           "    %one = arith.uitofp %far : i1 to f32\n"
                           "    %bias = arith.mulf %one, %min : f32\n"
                           "    %t = arith.addf %s, %bias : f32\n    attn.yield %t : f32\n  }"},
      {"Huge",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %more = arith.constant 3.0E+38 : f32\n    %less = arith.constant 1.0E+38 : f32\n"
       "    %c3 = arith.constant 3 : index\n    %first = arith.cmpi slt, %n, %c3 : index\n"
       "    %t = arith.select %first, %more, %less : f32\n    attn.yield %t : f32\n  }"},
  };
}

struct ExtremesTest : testing::TestWithParam<std::tuple<size_t, std::string>> {};

TEST_P(ExtremesTest, MatchesReference) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.withLse = true;
  Execution().check(getExtremeScores()[index], problem, kExtents);
}

static std::string nameScore(const testing::TestParamInfo<ExtremesTest::ParamType> &info) {
  return getExtremeScores()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, ExtremesTest,
                         testing::Combine(testing::Range<size_t>(0, getExtremeScores().size()),
                                          testing::ValuesIn(getOptions().device->getTypes())),
                         nameScore);

/// An additive mask as frameworks make them: captured, with the lowest number of its own type.
TEST(ExtremesTest, CapturedMask) {
  Problem problem;
  problem.type = getOptions().device->getTypes().front();
  problem.withLse = true;
  Variant bias = {"CapturedLowest",
                  "variants [#attn.relative_bias<40, top_left>] captures(%bias : tensor<?x?xbf16>)",
                  {kBias}};
  Execution execution;
  execution.edit = [](std::vector<Input> &inputs) {
    Array &table = inputs[3].array;
    for (int64_t i = 0; i < table.size(); ++i)
      if (i % 100 < 50)
        table.set(i, -3.38953139e38);
  };
  execution.check(bias, problem, kExtents);
}

/// The sink is the whole sum where it is larger than every score, and infinite or nothing.
TEST(ExtremesTest, Sinks) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (double sink : {2.5e38, 3.4e38, infinity, -3.4e38, -infinity})
    for (int64_t splits : {1, 3}) {
      Problem problem;
      problem.type = getOptions().device->getTypes().front();
      problem.withLse = true;
      problem.splits = splits;
      Execution execution;
      execution.edit = [&](std::vector<Input> &inputs) { inputs[3].array.set(1, sink); };
      execution.check({"Sink", "sink(%sink : tensor<?xf32>)", {kSink}}, problem, kExtents);
    }
}

/// Rows whose weights are all the same, of which one f32 cannot say how many there are.
TEST(ExtremesTest, LowPartsOfLse) {
  for (const char *score :
       {"0.0", "1.0E+5", "-1.0E+9", "1.0E+9", "-4.0E+12", "1.0E+20", "-3.4E+38"})
    for (const char *rest : {"", " sink(%sink : tensor<?xf32>)"})
      for (int64_t splits : {1, 3}) {
        Problem problem;
        problem.type = getOptions().device->getTypes().back();
        problem.withLse = problem.withLow = true;
        problem.splits = splits;
        Variant variant = {
            "Low",
            std::string(rest) + "score(%s, %b, %h, %m, %n) {\n    %t = arith.constant " + score +
                " : f32\n    attn.yield %t : f32\n  } "
                "mask(%b, %h, %m, %n) {\n"
                "    %keep = arith.cmpi sle, %n, %m : index\n    attn.yield %keep : i1\n  }"};
        if (*rest)
          variant.captures.push_back(kSink);
        Execution().check(variant, problem, kExtents);
      }
}

} // namespace attn::test
