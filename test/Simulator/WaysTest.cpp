//===- WaysTest.cpp - functions whose kernels depend on the call ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Launch.h"
#include "mlir/Parser/Parser.h"
#include "test/Simulator/Lowered.h"
#include "gtest/gtest.h"

using namespace attn;

/// Up to 64 elements become ones. More become what a scratch of zeros holds, and two.
static constexpr const char *kSource = R"(
#few = [[#plan.range<argument = 0, dim = 0, least = 0, most = 64>]]
#grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]]
func.func @ones(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = #grid>, plan.when = #few, plan.way = "few"} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  tile.store %one to %o[%c0] : tensor<64xf32>, memref<?xf32>
  return
}
func.func @twos(%o: memref<?xf32>, %s: memref<64xf32> {tile.scratch = [64], tile.zeroed})
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = #grid>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %block = gpu.block_id x
  %at = arith.muli %block, %c64 : index
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %zero = tile.load %s[%c0] : memref<64xf32> -> tensor<64xf32>
  %sum = arith.addf %two, %zero : tensor<64xf32>
  tile.store %sum to %o[%at] : tensor<64xf32>, memref<?xf32>
  return
}
)";

/// What running the source with one argument fails with.
static std::string getError(llvm::StringRef source) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &test::getContext());
  if (!module)
    return "does not parse";
  llvm::Expected<sim::Launch> launch = sim::Launch::create(*module);
  if (!launch)
    return llvm::toString(launch.takeError());
  Array output = llvm::cantFail(Array::allocate(ElementKind::F32, {64}));
  auto findings = launch->run({sim::Argument::of(output)}, sim::Options());
  return findings ? "" : llvm::toString(findings.takeError());
}

static std::vector<float> run(const sim::Launch &launch, int64_t size) {
  Array output = llvm::cantFail(Array::allocate(ElementKind::F32, {size}));
  output.poison();
  auto findings = launch.run({sim::Argument::of(output)}, sim::Options());
  EXPECT_TRUE(bool(findings)) << llvm::toString(findings.takeError());
  EXPECT_TRUE(findings && findings->empty());
  return {output.dataAs<float>(), output.dataAs<float>() + size};
}

TEST(Ways, ExtentsChoose) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kSource, &test::getContext());
  ASSERT_TRUE(module);
  llvm::Expected<sim::Launch> launch = sim::Launch::create(*module);
  ASSERT_TRUE(bool(launch)) << llvm::toString(launch.takeError());
  EXPECT_EQ(run(*launch, 60), std::vector<float>(60, 1.0f));
  EXPECT_EQ(run(*launch, 200), std::vector<float>(200, 2.0f));
}

// A block for each 8 elements: five of them would be three parts each on eight multiprocessors,
// which eight fill.
TEST(Ways, PartsChoose) {
  std::string source = kSource;
  llvm::StringRef few = "#plan.range<argument = 0, dim = 0, least = 0, most = 64>",
                  one =
                      "#plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = "
                      "0, dim = 0, divisor = 8>], keys = 16, most = 64>>";
  source.replace(source.find(few), few.size(), one);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &test::getContext());
  ASSERT_TRUE(module);
  llvm::Expected<sim::Launch> launch = sim::Launch::create(*module, /*multiprocessors=*/8);
  ASSERT_TRUE(bool(launch)) << llvm::toString(launch.takeError());
  EXPECT_EQ(run(*launch, 40), std::vector<float>(40, 2.0f));
  EXPECT_EQ(run(*launch, 60), std::vector<float>(60, 1.0f));
}

TEST(Ways, LastIsForAllCalls) {
  std::string source = llvm::StringRef(kSource).split("func.func @twos").first.str();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &test::getContext());
  ASSERT_TRUE(module);
  llvm::Expected<sim::Launch> launch = sim::Launch::create(*module);
  ASSERT_FALSE(bool(launch));
  EXPECT_EQ(llvm::toString(launch.takeError()),
            "expected the last kernel to be for all calls, got @ones for some");
}

TEST(Ways, ScratchIsBehindArguments) {
  EXPECT_EQ(getError(R"(
    func.func @first(%s: memref<64xf32> {tile.scratch = [64]}, %o: memref<?xf32>)
        attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
      return
    })"),
            "expected argument 1 of @first as its next scratch, got 0");
}

TEST(Ways, ScratchIsOfElementsThatAreSimulated) {
  EXPECT_EQ(getError(R"(
    func.func @narrow(%o: memref<?xf32>, %s: memref<64xi4> {tile.scratch = [64]})
        attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
      return
    })"),
            "expected scratch of numbers that arrays hold in @narrow, got i4");
}
