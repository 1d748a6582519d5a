//===- TuneTest.cpp - what attn-run's search tries, without a device -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Tune.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"
#include <cmath>
#include <vector>

using namespace attn;
using llvm::Expected;

namespace {
/// Times tiles by a formula: 128 x 96 are the fastest, more than 128 keys are refused.
struct TuneTest : testing::Test {
  Expected<double> measure(TileSizes sizes) {
    tried.push_back(sizes);
    if (sizes.blockM == 0)
      return sizes.stay ? 8.9 : 10.0;
    if (sizes.blockN > 128)
      return llvm::createStringError("expected room");
    double time = 9 + std::abs(sizes.blockM - 128) / 64. + std::abs(sizes.blockN - 96) / 160.;
    return sizes.stay ? time * stayFactor : time;
  }

  Tuning run(Device device, bool letStay) {
    Expected<Tuning> tuning = tune(
        device, letStay, [&](TileSizes sizes) { return measure(sizes); },
        [&](unsigned done, unsigned total) {
          EXPECT_EQ(done, tried.size());
          lastTotal = total;
        });
    EXPECT_TRUE(bool(tuning));
    return tuning ? *tuning : Tuning();
  }

  std::vector<TileSizes> tried;
  double stayFactor = 0.5;
  unsigned lastTotal = 0;
};
} // namespace

TEST_F(TuneTest, TheFastestAreTriedWithBlocksThatStay) {
  Tuning tuning = run(Device::CUDA, /*letStay=*/true);
  EXPECT_EQ(tuning.sizes.blockM, 128);
  EXPECT_EQ(tuning.sizes.blockN, 96);
  EXPECT_TRUE(tuning.sizes.stay);
  EXPECT_DOUBLE_EQ(tuning.fastest, 4.5);
  EXPECT_DOUBLE_EQ(tuning.rule, 10);
  ASSERT_EQ(tried.size(), lastTotal);
  EXPECT_EQ(tuning.numTried + tuning.numRefused, lastTotal);
  EXPECT_EQ(tuning.numRefused, 9u);
  // The three fastest, and no others.
  size_t numStaying = 0;
  for (auto [index, sizes] : llvm::enumerate(tried)) {
    EXPECT_EQ(sizes.stay, index + 3 >= tried.size());
    numStaying += sizes.stay;
    if (sizes.stay) {
      EXPECT_EQ(sizes.blockM, 128);
      EXPECT_LE(std::abs(sizes.blockN - 96), 16);
    }
  }
  EXPECT_EQ(numStaying, 3u);
}

TEST_F(TuneTest, BlocksStayOnlyWhereThatIsFaster) {
  stayFactor = 1.5;
  Tuning tuning = run(Device::CUDA, /*letStay=*/true);
  EXPECT_EQ(tuning.sizes.blockN, 96);
  EXPECT_FALSE(tuning.sizes.stay);
}

TEST_F(TuneTest, NoneStaysWhereNoneMay) {
  for (Device device : {Device::CPU, Device::CUDA}) {
    tried.clear();
    run(device, /*letStay=*/false);
    EXPECT_EQ(tried.size(), lastTotal);
    EXPECT_TRUE(llvm::none_of(tried, [](TileSizes sizes) { return sizes.stay; }));
  }
}

TEST_F(TuneTest, FailsWhereTheRuleDoes) {
  auto refuse = [](TileSizes) -> Expected<double> { return llvm::createStringError("no device"); };
  Expected<Tuning> tuning = tune(Device::CUDA, true, refuse, [](unsigned, unsigned) {});
  ASSERT_FALSE(bool(tuning));
  EXPECT_EQ(llvm::toString(tuning.takeError()), "no device");
}
