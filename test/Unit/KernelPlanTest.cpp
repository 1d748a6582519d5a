//===- KernelPlanTest.cpp - plans survive JSON and attributes ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/Plan.h"
#include "lib/Plan/PlanAttr.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace attn;
using Kind = KernelParameter::Kind;

static KernelPlan makePlan() {
  KernelPlan plan;
  plan.name = "forward";
  plan.target = "sm_90a";
  plan.parameters = {{Kind::TensorMap, 0, 0, "", {"bf16", {3, 2, 1, 0}, {64, 128, 1, 1}, 128}},
                     {Kind::Pointer, 3, 0, "", {}},
                     {Kind::Size, 1, 2, "i32", {}},
                     {Kind::Stride, 3, 0, "i64", {}},
                     {Kind::Scalar, 5, 0, "f32", {}}};
  plan.grid[0] = {{0, 2, 128}};
  plan.grid[1] = {{0, 1, 1}, {-1, 4, 1}};
  plan.grid[2] = {{SizeFactor::kMultiprocessors, 1, 1, 1, 1, {}, 8}};
  plan.block = {384, 1, 1};
  plan.cluster = {2, 1, 1};
  plan.dynamicSharedBytes = 163912;
  plan.isProgrammatic = true;
  plan.scratch = {{6, "f32", {{-1, 3, 1}, {0, 0, 1}, {-1, 64, 1}}, false},
                  {7, "i32", {{SizeFactor::kMultiprocessors, 2, 1}}, true}};
  plan.way = "few";
  plan.when = {{{{0, 2}, 1, 64},
                {{1, 2}, 1000, int64_t(1) << 40},
                {{0, 1}, 0, 8, {1, 1}},
                {{SizeFactor::kParts, 64, 1, 1, 1, {{1, 2, 256}, {0, 0}}}, 0, 1}},
               {{{SizeFactor::kMemoryRate}, 4000, INT64_MAX}}};
  SizeFactor parts{SizeFactor::kParts, 64};
  parts.of = {{1, 2, 256}, {0, 0}, {0, 2, 8, 3}};
  SizeFactor slots = parts;
  slots.argument = SizeFactor::kSlots;
  plan.grid[1].push_back(slots);
  plan.scratch.push_back(
      {8, "f32", {parts, {0, 2, 1, 8}, {0, 2, 4, 1, 4}, {9, 0, 1, 1, 1, {}, 1}}, false});
  return plan;
}

static std::string readError(llvm::StringRef text) {
  auto plans = readPlan(text);
  return plans ? "" : llvm::toString(plans.takeError());
}

TEST(KernelPlan, RoundTripsThroughJSON) {
  std::vector<KernelPlan> plans = {makePlan(), KernelPlan{}};
  auto read = readPlan(writePlan({plans, {}}));
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(read->kernels, plans);
  EXPECT_FALSE(read->rules);
  EXPECT_TRUE(read->ways.empty());
}

TEST(KernelPlan, WaysRoundTripThroughJSON) {
  FunctionPlan plan;
  plan.ways = {{"few", makePlan().when}, {"", {}}};
  auto read = readPlan(writePlan(plan));
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(*read, plan);
}

TEST(KernelPlan, FactorsOfSizesOnly) {
  for (SizeFactor factor :
       {SizeFactor{0, 2, 0}, SizeFactor{0, 2, 128, 0}, SizeFactor{0, 2, 128, 1, 0}}) {
    KernelPlan plan;
    plan.grid[0] = {factor};
    EXPECT_NE(readError(writePlan({{plan}, {}}))
                  .find("expected an argument of at least 0, a divisor, a multiplier and a unit of "
                        "at least 1"),
              std::string::npos)
        << factor.argument << ", " << factor.divisor << ", " << factor.multiplier << ", "
        << factor.unit;
  }
}

TEST(KernelPlan, PartsOfSizesOnly) {
  KernelPlan plan;
  SizeFactor parts{SizeFactor::kParts, 64};
  parts.of = {{1, 2, 256}, {SizeFactor::kMultiprocessors, 2}};
  plan.grid[0] = {parts};
  EXPECT_NE(readError(writePlan({{plan}, {}}))
                .find("expected 1 to 1024 parts, of sizes and "
                      "constants"),
            std::string::npos);
}

TEST(KernelPlan, SlotsOfSequences) {
  KernelPlan plan;
  SizeFactor slots{SizeFactor::kSlots, 64};
  slots.of = {{1, 2, 256}};
  plan.grid[0] = {slots};
  EXPECT_NE(readError(writePlan({{plan}, {}}))
                .find("expected 1 to 1024 parts, of sizes and "
                      "constants"),
            std::string::npos);
}

TEST(KernelPlan, CountsSlots) {
  // A sequence of average length has parts for three rounds, and each may have one more.
  EXPECT_EQ(countSlots(64, 512, 132, 64), 64 * 2);
  EXPECT_EQ(countSlots(8, 64, 132, 64), 8 * (8 + 1));
  // Bounded, and at least one part.
  EXPECT_EQ(countSlots(1, 8, 132, 64), 62 + 1);
  EXPECT_EQ(countSlots(8, 64, 132, 2), 8 * (2 + 1));
  EXPECT_EQ(countSlots(8, 64, 132, 0), 8 * (1 + 1));
  EXPECT_EQ(countSlots(100000, 800000, 132, 64), 100000 * 2);
  EXPECT_EQ(countSlots(0, 0, 132, 64), 0);
}

TEST(KernelPlan, CountsParts) {
  // As many as fill the device, for one block to eight.
  EXPECT_EQ(countParts(1, 132, 1024), 124);
  EXPECT_EQ(countParts(8, 132, 1024), 16);
  // Bounded, or enough without parts.
  EXPECT_EQ(countParts(8, 132, 7), 7);
  EXPECT_EQ(countParts(128, 132, 64), 1);
  EXPECT_EQ(countParts(512, 132, 64), 1);
  // One and a half rounds are worse than three.
  EXPECT_EQ(countParts(192, 132, 64), 2);
  // None, or nothing to split.
  EXPECT_EQ(countParts(0, 132, 64), 1);
  EXPECT_EQ(countParts(8, 132, 0), 1);
}

TEST(KernelPlan, RoundTripsThroughAttributes) {
  mlir::MLIRContext context;
  auto read = fromAttribute(toAttribute(&context, makePlan()));
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(*read, makePlan());
}

TEST(KernelPlan, RulesRoundTrip) {
  FunctionPlan plan{{makePlan()}, CallRules()};
  plan.rules->name = "forward";
  plan.rules->numGroups = 2;
  plan.rules->numArguments = 1;
  plan.rules->maxBatches = 65535;
  CallRules::Value value{
      "query", DataType::BF16, false, false, false, {-1, 64}, {{Letter::M, 0}, {Letter::D, 1}}, 16};
  plan.rules->values = {value, value};
  plan.rules->values[1].isResult = true;
  plan.rules->batches = {{0, 0}};
  std::string text = writePlan(plan);
  auto read = readPlan(text);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(*read, plan);
  std::string many = text;
  size_t at = many.find("\"groups\": 2");
  EXPECT_NE(readError(many.replace(at, 11, "\"groups\": 1048576"))
                .find("expected fewer than 2^20 groups"),
            std::string::npos);
  at = text.find("\"letters\": [");
  EXPECT_NE(readError(text.replace(at, 12, "\"letters\": [\"B\",")).find("function.values[0]"),
            std::string::npos);
}

TEST(KernelPlan, NamesWhatIsWrong) {
  EXPECT_EQ(readError(R"({"version": 2, "kernels": []})"), "expected kernel plan version 6, got 2");
  EXPECT_NE(readError(R"({"version": 6})").find("kernels"), std::string::npos);
  EXPECT_NE(readError("[").size(), 0u);
  std::string text = writePlan({{makePlan()}, {}});
  size_t at = text.find("\"pointer\"");
  EXPECT_NE(readError(text.replace(at, 9, "\"pointy\""))
                .find("expected tensor_map, pointer, size, stride or scalar"),
            std::string::npos);
  text = writePlan({{makePlan()}, {}});
  at = text.find("\"element_type\": \"f32\"");
  EXPECT_NE(readError(text.replace(at, 14, "\"element_kind\""))
                .find("kernels[0].scratch[0].element_type"),
            std::string::npos);
}

TEST(KernelPlan, DeepNestingIsAnError) {
  for (llvm::StringRef bracket : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 200000; ++i)
      text += bracket;
    EXPECT_EQ(readError(text), "expected a kernel plan that nests to a depth of 64, got more");
  }
  // Brackets in text are text.
  EXPECT_NE(readError("{\"\\\"" + std::string(100, '[') + "\": 0}").find("version"),
            std::string::npos);
}
