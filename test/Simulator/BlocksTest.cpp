//===- BlocksTest.cpp - grids whose blocks see each other -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "test/Simulator/Lowered.h"
#include "gtest/gtest.h"
#include <set>

using namespace attn;

static std::string makeSource(llvm::StringRef attribute) {
  return R"(
#kernel = #tile.kernel<warpgroups = 1, grid = [[5], [3]]>
func.func @sum(%o: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  tile.store %one to %o[%c0] )" +
         attribute.str() + R"( : tensor<64xf32>, memref<?xf32>
  return
})";
}

/// What the blocks leave, or what the simulator objects to.
static std::string run(const std::string &source, std::optional<uint64_t> seed, float &first) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &test::getContext());
  auto simulator = llvm::cantFail(sim::Simulator::create(test::getKernel(*module)));
  Array output = llvm::cantFail(Array::allocate(ElementKind::F32, {64}));
  std::fill_n(output.dataAs<float>(), 64, 0.5f);
  sim::Options options;
  options.seed = seed;
  auto findings = llvm::cantFail(simulator.run({sim::Argument::of(output)}, options));
  first = output.dataAs<float>()[0];
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const sim::Finding &finding : findings)
    finding.print(stream);
  return text;
}

TEST(Blocks, AddUp) {
  float first = 0;
  EXPECT_EQ(run(makeSource("{add}"), std::nullopt, first), "");
  EXPECT_EQ(first, 15.5f);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(run(makeSource("{add}"), seed, first), "");
    EXPECT_EQ(first, 15.5f) << "seed " << seed;
  }
}

TEST(Blocks, SeedsChooseTheirOrder) {
  std::set<std::string> texts;
  float first = 0;
  for (uint64_t seed = 0; seed < 8; ++seed)
    texts.insert(run(makeSource(""), seed, first));
  EXPECT_EQ(texts.count(""), 0u);
  EXPECT_GE(texts.size(), 4u);
}
