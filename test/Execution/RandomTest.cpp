//===- RandomTest.cpp - random attentions against the f64 reference -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A kernel is compiled from a mask, a score, types, D, Dv and a schedule; a configuration adds what
// a call adds: extents, heads, strides. Compiling takes longer than running, so a few
// configurations share a kernel. What is drawn depends on the seed and the number of the kernel
// only, so that the line printed behind a failure repeats it.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/GradExecution.h"
#include "test/Execution/RandomProblem.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace attn::test {
namespace {

/// The most configurations of one kernel.
unsigned getCallsPerKernel() {
  TestOptions &options = getOptions();
  return options.numKernels ? llvm::divideCeil(options.numRandom, options.numKernels) : 1;
}

struct RandomTest : testing::TestWithParam<unsigned> {
  static void TearDownTestSuite() {
    std::printf("random: %d kernels, %d configurations, %d mismatches\n", numKernels,
                numConfigurations, numMismatches);
  }
  static inline int numKernels = 0, numConfigurations = 0, numMismatches = 0;
};

TEST_P(RandomTest, MatchesReference) {
  TestOptions &options = getOptions();
  ProblemGenerator generator(options.seed, GetParam(), *options.device);
  Variant variant = generator.drawVariant();
  Problem problem = generator.drawProblem();
  std::vector<Extents> extents;
  unsigned first = GetParam() * getCallsPerKernel();
  for (unsigned i = first; i < std::min(first + getCallsPerKernel(), options.numRandom); ++i)
    extents.push_back(generator.drawExtents(options.isSmall));
  Execution execution(options.seed * 1000003 + GetParam());
  execution.check(variant, problem, extents);
  numKernels += execution.numCompiles;
  numConfigurations += execution.numRuns;
  numMismatches += execution.numMismatches;
  if (HasFailure())
    std::printf("reproduce: ExecutionTest %s --random=%u --kernels=%u --seed=%llu "
                "--gtest_filter=*RandomTest*/%u\n",
                options.command.c_str(), options.numRandom, options.numKernels,
                (unsigned long long)(options.seed), GetParam());
}

// --random=0.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RandomTest);
INSTANTIATE_TEST_SUITE_P(All, RandomTest,
                         testing::Range(0u, unsigned(llvm::divideCeil(getOptions().numRandom,
                                                                      getCallsPerKernel()))));

/// The same for gradients.
/// A family of them: how the command asks for `count`, of which so many share a kernel.
struct GradFamily {
  const char *option, *test;
  unsigned count, callsPerKernel;
  /// So that families draw other kernels by the same seed.
  uint64_t seedOffset;
  std::pair<Variant, Problem> (ProblemGenerator::*draw)();
  int numKernels = 0, numConfigurations = 0;

  void check(unsigned kernel) {
    TestOptions &options = getOptions();
    ProblemGenerator generator(options.seed + seedOffset, kernel, *options.device);
    auto [variant, problem] = (generator.*draw)();
    std::vector<Extents> extents;
    unsigned first = kernel * callsPerKernel;
    for (unsigned i = first; i < std::min(first + callsPerKernel, count); ++i)
      extents.push_back(generator.drawExtents(options.isSmall));
    GradExecution execution(options.seed * 1000003 + kernel);
    execution.check(variant, problem, extents);
    numKernels += execution.numCompiles;
    numConfigurations += execution.numRuns;
    if (testing::Test::HasFailure())
      std::printf("reproduce: ExecutionTest %s --random=0 --%s=%u --seed=%llu "
                  "--gtest_filter=*%s*/%u\n",
                  options.command.c_str(), option, count, (unsigned long long)(options.seed), test,
                  kernel);
  }
};

auto rangeOf(unsigned count, unsigned callsPerKernel) {
  return testing::Range(0u, unsigned(llvm::divideCeil(count, callsPerKernel)));
}

struct RandomGradTest : testing::TestWithParam<unsigned> {
  static constexpr unsigned kCallsPerKernel = 4;
  static void TearDownTestSuite() {
    std::printf("random gradients: %d kernels, %d configurations\n", family().numKernels,
                family().numConfigurations);
  }
  static GradFamily &family() {
    static GradFamily family = {"gradients",
                                "RandomGradTest",
                                getOptions().numGradients,
                                kCallsPerKernel,
                                7919,
                                &ProblemGenerator::drawGradients};
    return family;
  }
};

TEST_P(RandomGradTest, MatchesReference) { family().check(GetParam()); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RandomGradTest);
INSTANTIATE_TEST_SUITE_P(All, RandomGradTest,
                         rangeOf(getOptions().numGradients, RandomGradTest::kCallsPerKernel));

/// Of rows whose scores are large, against f64 of what f32 makes of them. Each call draws other
/// large numbers for other elements.
struct RandomLargeGradTest : testing::TestWithParam<unsigned> {
  static constexpr unsigned kCallsPerKernel = 8;
  static void TearDownTestSuite() {
    std::printf("random gradients of large scores: %d kernels, %d configurations\n",
                family().numKernels, family().numConfigurations);
  }
  static GradFamily &family() {
    static GradFamily family = {"large",
                                "RandomLargeGradTest",
                                getOptions().numLarge,
                                kCallsPerKernel,
                                104729,
                                &ProblemGenerator::drawLargeGradients};
    return family;
  }
};

TEST_P(RandomLargeGradTest, MatchesReference) { family().check(GetParam()); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RandomLargeGradTest);
INSTANTIATE_TEST_SUITE_P(All, RandomLargeGradTest,
                         rangeOf(getOptions().numLarge, RandomLargeGradTest::kCallsPerKernel));

} // namespace
} // namespace attn::test
