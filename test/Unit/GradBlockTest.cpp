//===- GradBlockTest.cpp - blocks of gradients fit, or are refused with the nearest -----------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Schedule/GradBlock.h"
#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

using namespace attn;

static const Machine &getHopper() { return *findMachine("sm_90a"); }

/// A Hopper whose count nobody has compared with ptxas: the rule has a formula for such machines.
static const Machine &getUncounted() {
  static const Machine machine = [] {
    Machine copy = getHopper();
    copy.otherRegisters = 0;
    return copy;
  }();
  return machine;
}

/// Of blocks that take so many registers, whatever their size.
static auto countAlways(int64_t spare) {
  return [spare](const GradBlock &) { return spare; };
}
/// Where the rule does not count.
static int64_t countNothing(const GradBlock &) {
  ADD_FAILURE() << "expected the formula, got a count";
  return 0;
}

/// Of 16-bit elements, with the sizes of the rule.
static GradBlock choose(int64_t headDim, int64_t valueDim, bool rowsRun) {
  return chooseGradBlock(getUncounted(), {headDim, valueDim, 2, rowsRun, 0, 0, 0}, {},
                         countNothing);
}

TEST(GradBlockTest, RulesChoiceFits) {
  for (int64_t d = 8; d <= 256; d += 8)
    for (int64_t dv = 8; dv <= 256; dv += 8)
      for (bool rowsRun : {false, true}) {
        GradBlock block = choose(d, dv, rowsRun);
        // Sums for keys and values share the registers of a thread.
        bool mayNotFit = rowsRun && d + dv > 320;
        if (!mayNotFit)
          EXPECT_EQ(refuseGradBlock(getHopper(), block), "") << d << " " << dv << " " << rowsRun;
        EXPECT_GT(block.running, 0);
        EXPECT_EQ(block.owned, 128);
      }
}

/// Of a pass over keys.
static int64_t chooseRows(int64_t headDim, int64_t valueDim, const GradWork &work = {}) {
  return chooseGradBlock(getUncounted(), {headDim, valueDim, 2, true, 0, 0, 0}, work, countNothing)
      .running;
}

TEST(GradBlockTest, RowsAreAsManyAsKeysWhereSumsAreNarrow) {
  for (int64_t d = 16; d <= 256; d += 16)
    for (int64_t dv = 16; dv <= 256; dv += 16)
      for (auto [weight, most] : {std::pair(0, 128), {3, 128}, {4, 64}, {12, 0}}) {
        GradWork work;
        work.isMasked = true;
        work.maskWeight = weight;
        EXPECT_EQ(chooseRows(d, dv, work) == 128, d + dv <= most)
            << d << " " << dv << " " << weight;
      }
  EXPECT_EQ(chooseRows(64, 64), 128);
  EXPECT_LT(chooseRows(72, 48), 128);
}

/// What a score takes is there for an element at a time, unless it is derived from or reads.
TEST(GradBlockTest, ScoresThatNobodyKeepsTakeNoRows) {
  GradWork score, reads, held;
  score.hasScore = reads.hasScore = held.hasScore = true;
  reads.gathersScore = reads.isMasked = true;
  held.heldTiles = 1;
  EXPECT_EQ(chooseRows(128, 128, score), chooseRows(128, 128));
  EXPECT_LT(chooseRows(128, 128, reads), chooseRows(128, 128));
  EXPECT_LT(chooseRows(128, 128, held), chooseRows(128, 128));
  EXPECT_LT(chooseRows(64, 64, score), 128);
}

/// Two rows of products of keys leave no registers for positions that a score reads.
TEST(GradBlockTest, ScoresTakeKeysOfWiderHeads) {
  GradWork score;
  score.hasScore = true;
  for (int64_t d : {64, 80, 96}) {
    EXPECT_EQ(choose(d, d, /*rowsRun=*/false).running, 128) << d;
    EXPECT_EQ(
        chooseGradBlock(getUncounted(), {d, d, 2, false, 0, 0, 0}, score, countNothing).running,
        d == 64 ? 128 : 64)
        << d;
  }
}

TEST(GradBlockTest, RegionsThatKeepMuchTakeRows) {
  GradWork held, factor, quotient;
  held.heldTiles = 1;
  factor.hasFactor = true;
  quotient.isMasked = quotient.divides = true;
  for (const GradWork &work : {held, factor, quotient})
    EXPECT_LT(chooseRows(64, 64, work), 128);
  // One sum alone has the margin of others.
  GradBlock one{128, 64, 2, true, 0, 0, 0, true, false};
  EXPECT_EQ(chooseGradBlock(getUncounted(), one, {}, countNothing).running, 112);
}

/// Of the fused form, or 0.
static int64_t chooseFusedRows(int64_t d, const GradWork &work, int64_t dv = 0) {
  auto block = chooseFusedBlock(getHopper(), {d, dv ? dv : d, 2, true, 0, 0, 0}, work);
  return block ? block->running : 0;
}

TEST(GradBlockTest, FusedFormHasRowsForMasks) {
  for (int64_t conditions : {0, 1, 2})
    for (int64_t others : {0, 1, 2})
      for (bool reads : {false, true}) {
        GradWork work;
        work.isMasked = true;
        work.rowConditions = conditions;
        work.otherRanges = others;
        work.readsMask = work.gathersMask = reads;
        EXPECT_EQ(chooseFusedRows(64, work), conditions < 2 && !others && !reads ? 128 : 0);
        for (int64_t d : {80, 96, 112, 128})
          EXPECT_EQ(chooseFusedRows(d, work), conditions == 2         ? 0
                                              : !others               ? 64
                                              : others == 1 && !reads ? 48
                                                                      : 0);
      }
}

TEST(GradBlockTest, FusedFormHasRowsForScores) {
  GradWork score, reads, held, factor;
  score.hasScore = reads.hasScore = held.hasScore = factor.hasScore = true;
  reads.gathersScore = held.derivesScores = factor.hasFactor = true;
  EXPECT_EQ(chooseFusedRows(64, score), 0);
  EXPECT_EQ(chooseFusedRows(128, score), 64);
  for (const GradWork &work : {reads, held, factor})
    EXPECT_EQ(chooseFusedRows(128, work), 48);
  for (GradWork *work : {&score, &reads, &held, &factor})
    work->isMasked = true;
  EXPECT_EQ(chooseFusedRows(128, score), 64);
  EXPECT_EQ(chooseFusedRows(128, factor), 0);
  score.maskOperations = 3;
  EXPECT_EQ(chooseFusedRows(128, score), 48);
  reads.gathersMask = true;
  EXPECT_EQ(chooseFusedRows(128, reads), 32);
  for (int64_t kept : {0, 1, 2, 3}) {
    held.keptScores = kept;
    EXPECT_EQ(chooseFusedRows(128, held), kept < 2 ? 48 : 32);
    GradWork searches = held;
    searches.searchesMask = true;
    EXPECT_EQ(chooseFusedRows(128, searches), kept < 2 ? 32 : 0);
  }
  held.isLong = true;
  EXPECT_EQ(chooseFusedRows(128, held), 0);
}

/// Whatever is asked for, a fused block is one that the machine has, and takes rows of 16.
TEST(GradBlockTest, FusedFormFits) {
  for (int64_t d = 8; d <= 256; d += 8)
    for (int64_t dv = 8; dv <= 256; dv += 8)
      for (bool masked : {false, true})
        for (bool score : {false, true}) {
          GradWork work;
          work.isMasked = masked;
          work.hasScore = work.derivesScores = score;
          auto block = chooseFusedBlock(getHopper(), {d, dv, 2, true, 0, 0, 0}, work);
          if (!block)
            continue;
          EXPECT_EQ(refuseGradBlock(getHopper(), *block), "") << d << " " << dv;
          EXPECT_TRUE(block->addsQueries && block->stages == 2 && block->owned == 128);
          EXPECT_TRUE(d <= 64 ? block->running == 128 : block->running <= 64) << d << " " << dv;
          // Columns in rows of a product are whole fragments.
          EXPECT_TRUE(d <= 64 || (d <= 128 && d % 16 == 0)) << d;
          EXPECT_LE(dv, 128);
        }
}

/// Both roles have the rows of one warpgroup, and as many registers as they get.
TEST(GradBlockTest, WideSumsAreDivided) {
  for (int64_t d = 8; d <= 256; d += 8)
    for (int64_t dv = 8; dv <= 256; dv += 8)
      for (int64_t weight : {0, 1, 4, 12}) {
        GradWork work;
        work.isMasked = weight > 0;
        work.maskWeight = weight;
        auto block =
            chooseDividedBlock(getUncounted(), {d, dv, 2, true, 0, 0, 0}, work, countNothing);
        if (!block)
          continue;
        EXPECT_EQ(refuseGradBlock(getHopper(), *block), "") << d << " " << dv;
        EXPECT_TRUE(fitsGradBlock(getUncounted(), *block, work, countNothing));
        EXPECT_TRUE(block->dividesSums && block->owned == 64 && block->stages == 2);
      }
  GradBlock wide{256, 256, 2, true, 0, 0, 0};
  EXPECT_EQ(chooseDividedBlock(getUncounted(), wide, {}, countNothing)->running, 64);
  GradWork work;
  work.derivesScores = true;
  EXPECT_FALSE(chooseDividedBlock(getUncounted(), wide, work, countNothing));
  work = {};
  work.hasFactor = true;
  EXPECT_FALSE(chooseDividedBlock(getUncounted(), wide, work, countNothing));
  wide.sumsValues = false;
  EXPECT_FALSE(chooseDividedBlock(getUncounted(), wide, {}, countNothing));
}

TEST(GradBlockTest, WideHeadsAreRefused) {
  EXPECT_EQ(refuseGradBlock(getHopper(), choose(256, 256, /*rowsRun=*/true)),
            "expected sums and scores of gradients that fit the 240 registers of a thread on "
            "sm_90a, got 292; no block "
            "fits these head dimensions");
}

TEST(GradBlockTest, RefusalsNameTheNearest) {
  auto expectRefusal = [](GradBlock block, llvm::StringRef part) {
    std::string why = refuseGradBlock(getHopper(), block);
    EXPECT_TRUE(llvm::StringRef(why).contains(part)) << why;
  };
  GradBlock rows = choose(64, 64, /*rowsRun=*/false), keys = choose(64, 64, /*rowsRun=*/true);
  GradBlock odd = rows;
  odd.headDim = 20;
  expectRefusal(odd, "expected head dimensions in multiples of 8 up to 256 for gradients on "
                     "sm_90a, got 20; the nearest is 24");
  odd = rows;
  odd.owned = 192;
  expectRefusal(odd, "expected block_m in multiples of 64 up to 128 for gradients on sm_90a, got "
                     "192; the nearest is 128");
  odd = keys;
  odd.owned = 80;
  expectRefusal(odd, "expected block_n in multiples of 64 up to 128 for gradients on sm_90a, got "
                     "80; the nearest is 128");
  odd.owned = 128;
  odd.running = 40;
  expectRefusal(odd, "expected block_m in multiples of 16 up to 256 for gradients on sm_90a, got "
                     "40; the nearest is 48");
  odd.running = 144;
  expectRefusal(odd, "fit the 240 registers of a thread on sm_90a, got 260; the nearest is block_m "
                     "128 and stages 2");
  odd.dividesSums = true;
  expectRefusal(odd, "expected block_n in multiples of 64 up to 64");
  odd.sumsKeys = false;
  expectRefusal(odd, "expected sums for keys and for values in blocks whose 128 rows are 4 "
                     "consumers', got one sum; the nearest is 2 consumers");
  odd = rows;
  odd.stages = 65;
  expectRefusal(odd, "expected stages in multiples of 1 up to 64");
  odd = choose(256, 256, /*rowsRun=*/false);
  odd.stages = 4;
  expectRefusal(odd, "bytes of shared memory on sm_90a, got ");
}

/// GPUs of 99 KB have a block for each head dimension: for both sums, or for one at a time.
TEST(GradBlockTest, SmallMachinesTakeWhatFits) {
  for (llvm::StringRef name : {"sm_86", "sm_89", "sm_120a"}) {
    const Machine &machine = *findMachine(name);
    ASSERT_EQ(machine.sharedBytes, 101376);
    auto refuse = [&](GradBlock block) {
      return refuseGradBlock(machine, chooseGradBlock(machine, block, {}, countNothing));
    };
    for (int64_t d = 8; d <= 256; d += 8)
      for (int64_t dv = 8; dv <= 256; dv += 8) {
        SCOPED_TRACE(testing::Message() << name.str() << " D " << d << " Dv " << dv);
        GradBlock keys{d, dv, 2, /*rowsRun=*/true, 0, 0, 0}, values = keys;
        keys.sumsValues = values.sumsKeys = false;
        EXPECT_EQ(refuse({d, dv, 2, /*rowsRun=*/false, 0, 0, 0}), "");
        EXPECT_EQ(refuse(keys), "");
        EXPECT_EQ(refuse(values), "");
      }
    // What is asked for and does not fit is refused with what does.
    std::string why = refuseGradBlock(machine, {128, 128, 2, true, /*owned=*/128, 64, 2});
    EXPECT_NE(why.find("fits 101376 bytes of shared memory on " + name.str()), std::string::npos);
    EXPECT_NE(why.find("the nearest is block_m "), std::string::npos) << why;
  }
}

/// Rows as many as sums and products leave room for, unless the program takes more.
TEST(GradBlockTest, CountedProgramsTellRows) {
  GradBlock keys{128, 128, 2, /*rowsRun=*/true, 0, 0, 0};
  auto choose = [&](const GradWork &work, CountSpare count) {
    return chooseGradBlock(getHopper(), keys, work, count).running;
  };
  EXPECT_EQ(choose({}, countAlways(255)), 64);
  // A program that keeps a tile of as many columns besides: its registers tell.
  auto countKept = [](const GradBlock &block) { return 112 - block.running * 7 / 4; };
  EXPECT_EQ(choose({}, countKept), 48);
  // One that counts does not see.
  GradWork reads;
  reads.isMasked = reads.readsMask = true;
  EXPECT_EQ(choose(reads, countAlways(255)), 48);
  GradWork dropout;
  dropout.hasFactor = true;
  EXPECT_EQ(choose(dropout, countAlways(255)), 48);
  // Nothing fits: the least that there is.
  EXPECT_EQ(choose({}, countAlways(15)), 16);
  EXPECT_FALSE(fitsGradBlock(getHopper(), chooseGradBlock(getHopper(), keys, {}, countAlways(15)),
                             {}, countAlways(15)));
}

/// Lowering takes milliseconds: one candidate where sums and products tell the size, and few where
/// they do not.
TEST(GradBlockTest, FewCandidatesAreCounted) {
  for (int64_t most = 0; most <= 128; most += 16) {
    int64_t candidates = 0;
    auto count = [&](const GradBlock &block) -> int64_t {
      ++candidates;
      return block.running <= most ? 255 : 0;
    };
    GradBlock block = chooseGradBlock(getHopper(), {64, 64, 2, true, 0, 0, 0}, {}, count);
    EXPECT_EQ(block.running, std::max<int64_t>(most, 16));
    EXPECT_LE(candidates, most == 128 ? 1 : most > 0 ? 4 : 8) << most;
  }
}

/// Tiles of 128 keys hold a whole row of a mask's addresses and bounds.
TEST(GradBlockTest, MasksOfSeveralBoundsHaveFewKeys) {
  GradWork window, gathers;
  window.isMasked = true;
  window.maskOperations = 2;
  gathers.gathersScore = true;
  auto choose = [&](int64_t d, const GradWork &work) {
    return chooseGradBlock(getHopper(), {d, d, 2, /*rowsRun=*/false, 0, 0, 0}, work,
                           countAlways(255))
        .running;
  };
  EXPECT_EQ(choose(64, window), 128);
  EXPECT_EQ(choose(96, {}), 128);
  EXPECT_EQ(choose(96, window), 64);
  EXPECT_EQ(choose(64, gathers), 64);
}
