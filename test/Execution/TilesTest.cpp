//===- TilesTest.cpp - tiles of any number of registers -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// On a CPU a tile is a number of vector registers, which kernels take in groups: what groups leave
// over, of lanes, rows, keys and columns, has loops of its own. Here tiles are given, or extents
// are static and make them, in all widths of registers. Kernels are small, so that to compile them
// takes little; what a single one multiplies is tested over all sizes by VectorKernelTest.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/GradExecution.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

namespace attn::test {
namespace {

/// A kernel, and what it is called with.
struct Tiling {
  Variant variant;
  Problem problem;
  std::vector<Extents> extents;
};

const Variant kTopLeft = {"CausalTopLeft", "variants [#attn.causal<top_left>]"};
const Variant kNarrow = {"Narrow", "variants [#attn.window<9, 3, bottom_right>]"};
const Variant kScore = {"SoftcapKeyLength",
                        "variants [#attn.softcap<5.0 : f32>, #attn.key_length] "
                        "captures(%lengths : tensor<?xi32>)",
                        {kLengths}};
/// Every third row keeps nothing, nor does a row keep every third key.
const Variant kHoles = {"Holes", "mask(%b, %h, %m, %n) {\n"
                                 "    %c3 = arith.constant 3 : index\n"
                                 "    %c0 = arith.constant 0 : index\n"
                                 "    %mn = arith.muli %m, %n : index\n"
                                 "    %r = arith.remui %mn, %c3 : index\n"
                                 "    %keep = arith.cmpi ne, %r, %c0 : index\n"
                                 "    attn.yield %keep : i1\n  }"};

Tiling makeTiling(const Variant &variant, int64_t blockM, int64_t blockN) {
  Tiling tiling = {variant, {}, {{100, 90, 1, 4, 4}}};
  tiling.problem.cpu = "x86-64-v3";
  tiling.problem.d = tiling.problem.dv = 24;
  tiling.problem.blockM = blockM;
  tiling.problem.blockN = blockN;
  return tiling;
}

/// What was wrong once: gradients where tiles are an odd number of registers with 8 lanes.
std::vector<Tiling> getPastFaults() {
  std::vector<Tiling> faults = {makeTiling(kCausal, 24, 24), makeTiling(kCausal, 40, 56),
                                makeTiling(kCausal, 72, 40), makeTiling(kFull, 0, 0)};
  Extents square = {40, 40, 1, 2, 2};
  faults.back().problem.extents = square;
  faults.back().extents = {square};
  return faults;
}

/// What it draws depends on the seed, the number and the processors only.
class TilingGenerator {
public:
  TilingGenerator(uint64_t seed, unsigned number) : random(seed * 1000003 + number) {
    std::vector<std::pair<std::string, int64_t>> all = getOptions().device->getProcessors();
    std::tie(cpu, lanes) = all[number % all.size()];
    type = getOptions().device->getTypes()[number / all.size() % 3];
  }

  Tiling draw() {
    Tiling tiling;
    Problem &p = tiling.problem;
    tiling.variant =
        pick(std::vector<Variant>{kFull, kCausal, kCausal, kTopLeft, kNarrow, kScore, kHoles});
    p.cpu = cpu;
    p.type = type;
    p.d = drawColumns();
    p.dv = chance(2) ? p.d : drawColumns();
    p.withLse = chance(2);
    p.memory = chance(3) ? Memory::Random : Memory::RowMajor;
    bool areGiven = !chance(3);
    if (areGiven) {
      p.blockM = drawTile();
      p.blockN = drawTile();
    }
    int64_t mostRows = areGiven ? 2 * p.blockM + lanes : 7 * lanes,
            mostKeys = areGiven ? 2 * p.blockN + lanes : 7 * lanes;
    if (!areGiven || chance(3)) {
      Extents e = drawHeads({lanes * between(1, mostRows / lanes), between(1, mostKeys)});
      if (chance(2))
        e.n = lanes * between(1, mostKeys / lanes);
      p.extents = e;
      tiling.extents = {e};
      return tiling;
    }
    tiling.extents = {drawHeads({2 * p.blockM, p.blockN}),
                      drawHeads({between(1, mostRows), between(1, mostKeys)}),
                      drawHeads({between(1, mostRows), between(1, mostKeys)})};
    return tiling;
  }

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

private:
  bool chance(int64_t of) { return between(1, of) == 1; }
  template <typename T> T pick(const std::vector<T> &from) {
    return from[between(0, from.size() - 1)];
  }
  /// Nine registers are two groups of four and one left over, of any kind there is.
  int64_t drawTile() { return chance(5) ? between(1, 7 * lanes) : lanes * between(1, 9); }
  int64_t drawColumns() { return pick(std::vector<int64_t>{1, 7, 8, 16, 17, 24, 33, 40, 48, 64}); }
  Extents drawHeads(Extents e) {
    e.keyHeads = between(1, 2);
    e.heads = e.keyHeads * between(1, 3);
    e.batch = between(1, 2);
    return e;
  }

  std::mt19937_64 random;
  std::string cpu, type;
  int64_t lanes;
};

/// None where the device is no CPU.
unsigned count(unsigned number) {
  return getOptions().device->getProcessors().empty() ? 0 : number;
}

/// Prints what repeats a failure.
void printReproducer(const char *suite, unsigned number) {
  if (testing::Test::HasFailure())
    std::printf("reproduce: ExecutionTest --random=%u --gradients=%u --seed=%llu "
                "--gtest_filter=*%s*/%u\n",
                getOptions().numRandom, getOptions().numGradients,
                (unsigned long long)(getOptions().seed), suite, number);
}

struct TilesTest : testing::TestWithParam<unsigned> {};

TEST_P(TilesTest, MatchesReference) {
  TilingGenerator generator(getOptions().seed, GetParam());
  Tiling tiling = generator.draw();
  tiling.problem.splits = generator.between(1, 3);
  Execution execution(GetParam());
  execution.check(tiling.variant, tiling.problem, tiling.extents);
  printReproducer("TilesTest", GetParam());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TilesTest);
INSTANTIATE_TEST_SUITE_P(All, TilesTest, testing::Range(0u, count(getOptions().numRandom / 2)));

struct TilesGradTest : testing::TestWithParam<unsigned> {};

TEST_P(TilesGradTest, MatchesReference) {
  Tiling tiling = TilingGenerator(getOptions().seed + 7919, GetParam()).draw();
  const Problem &p = tiling.problem;
  SCOPED_TRACE(llvm::formatv("cpu={0} block={1}x{2}", p.cpu, p.blockM, p.blockN).str());
  GradExecution(GetParam()).check(tiling.variant, p, tiling.extents);
  printReproducer("TilesGradTest", GetParam());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TilesGradTest);
INSTANTIATE_TEST_SUITE_P(All, TilesGradTest, testing::Range(0u, count(getOptions().numGradients)));

TEST(TilesGrad, PastFaults) {
  std::vector<std::pair<std::string, int64_t>> processors = getOptions().device->getProcessors();
  for (const Tiling &tiling : getPastFaults()) {
    const Problem &p = tiling.problem;
    if (llvm::none_of(processors, [&](const auto &known) { return known.first == p.cpu; }))
      continue;
    SCOPED_TRACE(llvm::formatv("block={0}x{1}", p.blockM, p.blockN).str());
    GradExecution().check(tiling.variant, p, tiling.extents);
  }
}

} // namespace
} // namespace attn::test
