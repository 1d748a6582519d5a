//===- ScheduleRuleTest.cpp - the rule's choices are ones that the later rooms accept ------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Attn/SearchModel.h"
#include "lib/Transforms/Attn/WayRules.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "test/Unit/GPUProblems.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {
/// Bytes of shared memory by the types of places that tile-promote-operands makes.
class SharedTypes {
public:
  SharedTypes() { context.loadDialect<tile::TileDialect>(); }

  int64_t getBytes(int64_t rows, int64_t columns, bool isSummed, int64_t stages) {
    if (isSummed)
      columns = llvm::alignTo(columns, 16);
    int64_t swizzle = columns >= 64 ? 128 : columns >= 32 ? 64 : 32;
    auto type = tile::SharedType::getChecked(
        [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); }, &context, {rows, columns},
        mlir::BFloat16Type::get(&context), swizzle, stages);
    return type ? type.getSizeInBytes() : -1;
  }

private:
  mlir::MLIRContext context;
};
} // namespace

static GPUBlock makeBlock(const GPUProblem &problem, const Schedule &schedule) {
  return {problem.headDim, problem.valueDim, 2, schedule};
}

/// Registers of a thread that scores, their weights in 16 bits and the accumulator take.
static int64_t countRegisters(int64_t blockN, int64_t valueDim) {
  return blockN / 2 + blockN / 4 + valueDim / 2;
}

static void expectAccepted(SharedTypes &types, const GPUProblem &problem, const Choice &choice) {
  const Schedule &sizes = choice.schedule;
  GPUBlock block = makeBlock(problem, sizes);
  SCOPED_TRACE(testing::Message() << "D " << problem.headDim << " Dv " << problem.valueDim
                                  << " weight " << problem.work.weight << " rule "
                                  << choice.rule.str());
  ASSERT_EQ(refuseBlock(getHopper(), block), "");
  // schedule_c3
  ASSERT_EQ(sizes.lists, problem.hidesFullTiles && problem.splits == 1 && !sizes.stay);
  ASSERT_EQ(types.getBytes(sizes.blockM, block.headDim, /*isSummed=*/true, 1) +
                types.getBytes(sizes.blockN, block.headDim, /*isSummed=*/true, sizes.stages) +
                types.getBytes(sizes.blockN, block.valueDim, /*isSummed=*/false, sizes.stages) +
                (sizes.stay ? 16 : 8) + 32 * sizes.stages,
            getSharedBytes(getHopper(), block));
  ASSERT_LE(countRegisters(sizes.blockN, problem.valueDim),
            getHopper().getBudget(sizes.consumers, sizes.stay).consumer);
}

TEST(ScheduleRule, EveryChoiceForCUDAIsAccepted) {
  SharedTypes types;
  forEachProblem([&](const GPUProblem &problem) {
    expectAccepted(types, problem, chooseForCUDA(getHopper(), problem));
  });
}

/// Where reads of cells decide, tiles lie in cells and are listed, if there are such tiles; and
/// what is read by cell takes no keys.
TEST(ScheduleRule, TilesLieInCells) {
  for (Cell cell : {Cell{128, 128}, Cell{64, 64}, Cell{256, 192}, Cell{0, 128}, Cell{128, 0},
                    Cell{192, 64}, Cell{1024, 1024}})
    for (int64_t columns = 8; columns <= 256; columns += 8)
      for (bool gathers : {false, true}) {
        GPUProblem problem{columns, columns, /*isMasked=*/true};
        problem.work = {/*gathers=*/true, /*isLong=*/false, /*weight=*/gathers ? 30 : 9};
        problem.hidesFullTiles = true;
        problem.cell = cell;
        problem.workInCell = {gathers, false, gathers ? 20 : 0};
        Choice choice = chooseForCUDA(getHopper(), problem);
        const Schedule &sizes = choice.schedule;
        SCOPED_TRACE(testing::Message() << "D " << columns << " cell " << cell.rows << " x "
                                        << cell.keys << " rule " << choice.rule.str());
        EXPECT_EQ(refuseBlock(getHopper(), makeBlock(problem, sizes)), "");
        EXPECT_TRUE(cell.holds({sizes.blockM, sizes.blockN}))
            << sizes.blockM << " " << sizes.blockN;
        EXPECT_TRUE(sizes.lists && !sizes.stay);
        EXPECT_EQ(sizes.consumers, sizes.blockM / 64);
      }
  GPUProblem problem{128, 128, /*isMasked=*/true};
  // Rows of one consumer leave room for a second block.
  problem.cell = {64, 64};
  EXPECT_EQ(chooseForCUDA(getHopper(), problem).schedule.resident, 2);
  problem.cell.reset();
  problem.work = problem.workInCell = {/*gathers=*/true, /*isLong=*/false, /*weight=*/9};
  Schedule usual = chooseForCUDA(getHopper(), problem).schedule;
  // Too small, or in parts.
  problem.cell = {16, 16};
  EXPECT_EQ(chooseForCUDA(getHopper(), problem).schedule, usual);
  problem.cell = {128, 128};
  EXPECT_TRUE(chooseForCUDA(getHopper(), problem).schedule.lists);
  problem.splits = 7;
  EXPECT_FALSE(chooseForCUDA(getHopper(), problem).schedule.lists);
}

TEST(ScheduleRule, EveryChoiceForDecodingIsAccepted) {
  forEachProblem([](const GPUProblem &problem) {
    for (bool isGiven : {false, true}) {
      Schedule sizes = chooseForDecoding(getHopper(), problem, /*blockN=*/0, isGiven).schedule;
      GPUBlock block = makeBlock(problem, sizes);
      ASSERT_EQ(sizes.blockM, 64);
      ASSERT_EQ(refuseBlock(getHopper(), block), "") << problem.headDim << " " << problem.valueDim;
      ASSERT_LE(countRegisters(sizes.blockN, problem.valueDim),
                getHopper().getBudget(sizes.consumers, /*stays=*/false, sizes.resident).consumer);
      // Two blocks where nothing else wants registers or shared memory.
      bool isWide = std::max(problem.headDim, problem.valueDim) > 128;
      ASSERT_EQ(sizes.resident,
                isGiven || isWide || problem.hasFactors || problem.work.isLong ? 1 : 2);
      ASSERT_LE(sizes.resident * (getSharedBytes(getHopper(), block) + 1024), 228 * 1024);
      ASSERT_GE(sizes.stages, 2);
    }
  });
}

TEST(ScheduleRule, FunctionsAndFactorsLeaveFewKeysForDecoding) {
  auto choose = [](int64_t columns, RegionWork work, bool hasFactors = false) {
    GPUProblem problem{columns, columns};
    problem.work = work;
    problem.hasFactors = hasFactors;
    return chooseForDecoding(getHopper(), problem, 0, false).schedule.blockN;
  };
  EXPECT_EQ(choose(64, {}), 96);
  EXPECT_EQ(choose(128, {}), 80);
  EXPECT_EQ(choose(256, {}), 64);
  EXPECT_EQ(choose(64, {false, true, 9}), 48);
  EXPECT_EQ(choose(256, {false, true, 1}), 32);
  EXPECT_EQ(choose(256, {true, false, 7}), 64);
  EXPECT_EQ(choose(256, {true, false, 14}), 32);
  EXPECT_EQ(choose(128, {}, /*hasFactors=*/true), 32);
  // What is asked for holds.
  EXPECT_EQ(chooseForDecoding(getHopper(), {64, 64}, 48, true).schedule.blockN, 48);
  EXPECT_EQ(chooseForDecoding(getHopper(), {64, 64}, 0, true).schedule.blockN, 128);
}

TEST(ScheduleRule, BlocksStayBesideBiasesThatShareRegisters) {
  auto stays = [](int64_t columns, RegionWork work) {
    GPUProblem problem{columns, columns, /*isMasked=*/true, /*scoreReadsTensors=*/true};
    problem.work = work;
    return chooseForCUDA(getHopper(), problem).schedule.stay;
  };
  RegionWork slopes{false, false, 7}, distances{true, false, 13}, heavy{true, false, 14};
  RegionWork apart = distances;
  apart.gathersApart = true;
  for (int64_t columns : {72, 128}) {
    EXPECT_TRUE(stays(columns, slopes));
    EXPECT_TRUE(stays(columns, distances));
    EXPECT_FALSE(stays(columns, heavy));
    EXPECT_FALSE(stays(columns, apart));
  }
  EXPECT_FALSE(stays(64, slopes));
  EXPECT_FALSE(stays(256, slopes));
}

TEST(ScheduleRule, WindowsAreShortAtAllLengths) {
  auto make = [](int64_t columns, int64_t scoreConditions) {
    GPUProblem problem{columns, columns, /*isMasked=*/true};
    problem.work.weight = 3;
    problem.work.scoreConditions = scoreConditions;
    return problem;
  };
  for (int64_t columns : {32, 64}) {
    Schedule window = chooseForCUDA(getHopper(), make(columns, 2)).schedule;
    EXPECT_EQ(window.blockM, 128);
    EXPECT_TRUE(window.stay);
    EXPECT_FALSE(chooseForLength(getHopper(), make(columns, 2)));
    EXPECT_EQ(chooseForCUDA(getHopper(), make(columns, 1)).schedule.blockM, 192);
    EXPECT_TRUE(chooseForLength(getHopper(), make(columns, 1)));
  }
}

// A step asks whether a maximum rose where full tiles have products and exponentials alone: what
// else is computed beside them was measured to lose by it.
TEST(ScheduleRule, StepsAskBesideOneComparison) {
  size_t numEdges = 0;
  forEachProblem([&](const GPUProblem &problem) {
    Schedule sizes = chooseForCUDA(getHopper(), problem).schedule;
    bool isEdge = problem.isMasked && problem.work.weight <= 1 && !problem.scoreReadsTensors &&
                  !problem.work.gathers && !problem.work.isLong && !problem.hasFactors &&
                  problem.splits == 1;
    int64_t columns = std::max(problem.headDim, problem.valueDim);
    numEdges += isEdge;
    if (isEdge && columns > 64) {
      ASSERT_EQ(sizes.slack, 0) << columns;
      ASSERT_TRUE(sizes.stay) << columns;
    }
    if (problem.work.weight > 1 && columns > 64 && columns <= 192) {
      ASSERT_EQ(sizes.slack, -1) << columns;
    }
    // A tail evens out what multiprocessors differ in, where tiles are long or scores work.
    bool isBiased = problem.isMasked && problem.scoreReadsTensors && sizes.stay && columns <= 128;
    bool isNarrow = columns <= 192 && problem.valueDim <= 128;
    ASSERT_EQ(sizes.tail, isEdge && columns > 128 ? 2 - isNarrow : isBiased ? 2 : 0) << columns;
    ASSERT_EQ(sizes.recompute, isBiased || (isEdge && columns > 192)) << columns;
    // What a score function does stands between a product and the exponentials already.
    if (sizes.hold) {
      ASSERT_TRUE(!problem.hasScore && problem.splits == 1 && columns <= 192) << columns;
    }
    if (isEdge && columns > 64 && columns <= 192) {
      ASSERT_EQ(sizes.hold, !problem.hasScore) << columns;
    }
  });
  EXPECT_GT(numEdges, 100u);
}

// Three warpgroups have rows that differ in the tiles they need by more than one; beside two stages
// of wide heads, whoever is ahead waits for what the last one holds.
TEST(ScheduleRule, ConsumersBeginApartWhereTheyAreThree) {
  size_t numApart = 0;
  forEachProblem([&](const GPUProblem &problem) {
    Schedule sizes = chooseForCUDA(getHopper(), problem).schedule;
    ASSERT_EQ(sizes.apart, problem.isMasked && sizes.blockM == 192);
    numApart += sizes.apart;
    if (std::optional<LengthChoice> choice = chooseForLength(getHopper(), problem))
      ASSERT_FALSE(choice->choice.schedule.apart);
  });
  EXPECT_GT(numApart, 100u);
}

TEST(ScheduleRule, WideHeadsHaveTheKeysThatFit) {
  auto choose = [](int64_t headDim, int64_t valueDim, bool isMasked) {
    GPUProblem problem{headDim, valueDim, isMasked};
    problem.work.weight = isMasked;
    return chooseForCUDA(getHopper(), problem).schedule;
  };
  EXPECT_EQ(choose(96, 96, false).blockN, 112);
  EXPECT_EQ(choose(104, 96, false).blockN, 80);
  EXPECT_EQ(choose(192, 192, true).blockN, 112);
  EXPECT_EQ(choose(192, 128, true).blockN, 128);
  EXPECT_EQ(choose(128, 192, true).blockN, 112);
  EXPECT_EQ(choose(192, 192, false).blockN, 96);
  EXPECT_EQ(choose(192, 128, false).blockN, 128);
  EXPECT_EQ(choose(128, 192, false).blockN, 96);
  for (int64_t valueDim : {128, 192, 256})
    EXPECT_EQ(choose(192, valueDim, false).slack, 0);
}

// Registers for the query are left where neither a mask of more than one comparison nor a score has
// them, and only wide heads read as much of it in a step as of keys.
TEST(ScheduleRule, WideHeadsKeepColumnsOfTheQuery) {
  size_t numKept = 0;
  forEachProblem([&](const GPUProblem &problem) {
    int64_t keep = chooseForCUDA(getHopper(), problem).schedule.keep;
    int64_t columns = std::max(problem.headDim, problem.valueDim);
    bool isPlain = problem.work.weight <= problem.isMasked && !problem.hasFactors;
    numKept += keep > 0;
    ASSERT_TRUE(keep == 0 || (isPlain && problem.splits == 1 && columns > 128)) << columns;
    ASSERT_LT(keep, problem.headDim) << columns;
    if (std::optional<LengthChoice> choice = chooseForLength(getHopper(), problem))
      ASSERT_TRUE(
          choice->choice.schedule.keep == 0 ||
          (columns > 128 && columns <= 192 && choice->choice.schedule.keep < problem.headDim));
  });
  EXPECT_GT(numKept, 10u);
  auto choose = [](int64_t headDim, int64_t valueDim, bool isMasked = false) {
    GPUProblem problem{headDim, valueDim, isMasked};
    problem.work.weight = isMasked;
    return chooseForCUDA(getHopper(), problem).schedule.keep;
  };
  EXPECT_EQ(choose(256, 256), 96);
  EXPECT_EQ(choose(256, 256, /*isMasked=*/true), 48);
  EXPECT_EQ(choose(192, 128), 128);
  EXPECT_EQ(choose(192, 192), 0);
  EXPECT_EQ(choose(64, 256), 0);
}

// With another slack errors are greater than with exact maxima: that is for who asks.
TEST(ScheduleRule, NoChoiceLetsMaximaLag) {
  forEachProblem([](const GPUProblem &problem) {
    ASSERT_LE(chooseForCUDA(getHopper(), problem).schedule.slack, 0);
    if (std::optional<LengthChoice> choice = chooseForLength(getHopper(), problem))
      ASSERT_LE(choice->choice.schedule.slack, 0);
    for (auto choose : {chooseForFewRows, chooseForFewKeys})
      if (std::optional<Choice> choice = choose(getHopper(), problem))
        ASSERT_LE(choice->schedule.slack, 0);
  });
}

// A second kernel is one that differs, stays, and has bounds that tell its calls from others.
TEST(ScheduleRule, EveryChoiceForALengthIsAccepted) {
  SharedTypes types;
  size_t numShort = 0;
  forEachProblem([&](const GPUProblem &problem) {
    std::optional<LengthChoice> choice = chooseForLength(getHopper(), problem);
    if (!choice)
      return;
    ++numShort;
    expectAccepted(types, problem, choice->choice);
    ASSERT_TRUE(choice->choice.schedule.stay);
    ASSERT_NE(choice->choice.schedule, chooseForCUDA(getHopper(), problem).schedule);
    int64_t columns = std::max(problem.headDim, problem.valueDim);
    // Any rows or any keys on either side are all calls, and are meant to be at D = 97 to 192.
    bool areAll =
        (choice->either ? std::max(choice->mostRows, choice->mostKeys)
                        : std::min(choice->mostRows, choice->mostKeys)) == LengthChoice::kAny;
    ASSERT_EQ(areAll, !problem.isMasked && columns > 96 && columns <= 192) << columns;
    bool areSquare = columns > 48 && columns <= 64;
    ASSERT_EQ(choice->choice.schedule.hold, !problem.hasScore && (areAll || areSquare)) << columns;
    // Wider heads keep registers for a mask.
    ASSERT_TRUE(columns <= 128 || !problem.isMasked) << columns;
    // Without a mask more than the tiles lives across the loops.
    bool isNarrow = columns > 128 && columns <= 192 && problem.valueDim <= 128;
    ASSERT_EQ(choice->choice.schedule.recompute, !problem.isMasked && columns > 48 && !isNarrow)
        << columns;
    ASSERT_EQ(choice->choice.schedule.keep > 0,
              columns > 128 && columns <= 192 && problem.headDim > (isNarrow ? 64 : 48));
    ASSERT_EQ(choice->choice.schedule.tail, 0);
    ASSERT_FALSE(problem.splits > 1 || problem.hasFactors || problem.work.isLong);
    ASSERT_LE(problem.work.weight, 4);
  });
  EXPECT_GT(numShort, 1000u);
}

// Few rows fill a tile of the kernel for them, which is another than that of long sequences. None
// has regions, and where few rows alone make a call short, there is one.
TEST(ScheduleRule, EveryChoiceForFewRowsIsAccepted) {
  SharedTypes types;
  size_t numNarrow = 0, numWide = 0;
  forEachProblem([&](const GPUProblem &problem) {
    std::optional<Choice> few = chooseForFewRows(getHopper(), problem);
    int64_t columns = std::max(problem.headDim, problem.valueDim);
    bool isPlain = !problem.isMasked && !problem.hasFactors && problem.work.weight == 0 &&
                   !problem.work.isLong && problem.splits == 1;
    ASSERT_EQ(few.has_value(), isPlain && columns <= 128);
    if (!few) {
      std::optional<LengthChoice> choice = chooseForLength(getHopper(), problem);
      ASSERT_FALSE(choice && choice->either);
      return;
    }
    // Only masks hide tiles.
    GPUProblem unmasked = problem;
    unmasked.hidesFullTiles = false;
    expectAccepted(types, unmasked, *few);
    const Schedule &sizes = few->schedule;
    ASSERT_EQ(sizes.blockM, 128);
    ASSERT_EQ(sizes.blockN, 128);
    ASSERT_FALSE(sizes.stay);
    ASSERT_EQ(sizes.hold, !problem.hasScore);
    ASSERT_EQ(sizes.slack, columns > 64 ? 0 : -1);
    ASSERT_NE(sizes, chooseForCUDA(getHopper(), problem).schedule);
    ++(columns <= 64 ? numNarrow : numWide);
  });
  EXPECT_GT(numNarrow, 64u);
  EXPECT_GT(numWide, 128u);
}

// Few keys fill a tile of 80, in another kernel than those of other calls.
TEST(ScheduleRule, EveryChoiceForFewKeysIsAccepted) {
  SharedTypes types;
  std::map<std::string, size_t> numOfRule;
  forEachProblem([&](const GPUProblem &problem) {
    std::optional<Choice> few = chooseForFewKeys(getHopper(), problem);
    bool isPlain = !problem.isMasked && !problem.hasFactors && problem.work.weight == 0 &&
                   !problem.work.isLong && problem.splits == 1;
    ASSERT_EQ(few.has_value(), isPlain);
    if (!few)
      return;
    // Only masks hide tiles.
    GPUProblem unmasked = problem;
    unmasked.hidesFullTiles = false;
    expectAccepted(types, unmasked, *few);
    const Schedule &sizes = few->schedule;
    bool isWide = std::max(problem.headDim, problem.valueDim) > 128;
    ASSERT_EQ(sizes.blockM, isWide ? 128 : 192);
    // The least rows of a place that narrow heads fill are 32.
    ASSERT_EQ(sizes.blockN, std::min(problem.headDim, problem.valueDim) <= 16 ? 96 : 80);
    ASSERT_TRUE(sizes.stay);
    ASSERT_EQ(sizes.recompute, isWide);
    ASSERT_NE(sizes, chooseForCUDA(getHopper(), problem).schedule);
    std::optional<LengthChoice> choice = chooseForLength(getHopper(), problem);
    // Blocks that hold nothing beside a score may be the same where heads are the narrowest.
    ASSERT_FALSE(choice && !problem.hasScore && sizes == choice->choice.schedule);
    ++numOfRule[few->rule.str()];
  });
  EXPECT_EQ(numOfRule.size(), 3u);
  for (const auto &[rule, count] : numOfRule)
    EXPECT_GT(count, 64u) << rule;
}

/// The block with the sizes that a refusal names after "the nearest is".
static GPUBlock takeNearest(GPUBlock block, llvm::StringRef why) {
  Schedule &schedule = block.schedule;
  llvm::StringRef nearest = why.split("the nearest is ").second.split(", or").first;
  auto read = [&](llvm::StringRef name, int64_t &size) {
    llvm::StringRef rest = nearest.split(name).second.ltrim();
    return !rest.consumeInteger(10, size);
  };
  if (read("block_m", schedule.blockM))
    schedule.consumers = schedule.blockM / 64;
  read("block_n", schedule.blockN);
  read("stages", schedule.stages);
  // The size that was refused is the only one without a name.
  llvm::StringRef what = why.split("expected ").second;
  int64_t number = 0;
  if (!nearest.getAsInteger(10, number)) {
    if (what.starts_with("block_m"))
      schedule.consumers = (schedule.blockM = number) / 64;
    else if (what.starts_with("block_n"))
      schedule.blockN = number;
    else if (what.starts_with("stages"))
      schedule.stages = number;
    else if (what.starts_with("a consumer"))
      schedule.consumers = number;
  }
  return block;
}

// The query of a block that stays is a ring of its own, and its consumers have fewer registers.
TEST(ScheduleRule, BlocksThatStayNeedMore) {
  GPUBlock block{128, 128, 2, {.blockM = 128, .blockN = 128, .stages = 2, .consumers = 2}},
      staying = block;
  staying.schedule.stay = true;
  EXPECT_EQ(getSharedBytes(getHopper(), staying), getSharedBytes(getHopper(), block) + 8);
  EXPECT_EQ(refuseBlock(getHopper(), staying), "");
  for (int64_t consumers = 1; consumers <= getHopper().getMostConsumers(); ++consumers) {
    const RoleBudget &budget = getHopper().getBudget(consumers, /*stays=*/true);
    EXPECT_LE(budget.consumer, getHopper().getBudget(consumers, /*stays=*/false).consumer);
    EXPECT_LE(budget.producer + consumers * budget.consumer,
              getHopper().getLaunchRegisters(1 + consumers) * (1 + consumers))
        << consumers;
  }
}

// A refusal leads to a block that is accepted, after one size at a time.
TEST(ScheduleRule, NearestBlocksAreAccepted) {
  size_t numRefused = 0;
  for (int64_t d : {8, 16, 64, 120, 128, 192, 256})
    for (int64_t dv : {8, 24, 128, 256})
      for (int64_t m : {1, 64, 100, 128, 192, 256, 448, 512, 4096})
        for (int64_t n : {1, 16, 80, 112, 144, 256, 300})
          for (int64_t stages : {1, 2, 3, 5, 64, 65}) {
            GPUBlock block{d, dv, 2, {.blockM = m, .blockN = n, .stages = stages, .consumers = 2}};
            std::string why = refuseBlock(getHopper(), block);
            numRefused += !why.empty();
            for (unsigned step = 0; step < 8 && !why.empty(); ++step) {
              block = takeNearest(block, why);
              why = refuseBlock(getHopper(), block);
            }
            ASSERT_EQ(why, "") << "D " << d << " Dv " << dv << " m " << m << " n " << n
                               << " stages " << stages;
          }
  EXPECT_GT(numRefused, 1000u);
}

// A remark names the row that decided.
TEST(ScheduleRule, EveryRowHasAName) {
  llvm::StringSet<> names;
  for (llvm::StringRef name : getRowNames(getHopper()))
    EXPECT_TRUE(names.insert(name).second) << name.str();
  EXPECT_EQ(names.size(), 40u);
}

TEST(ScheduleRule, EveryChoiceForCPUIsPositive) {
  for (int64_t lanes : {4, 8, 16})
    for (bool bf16Pairs : {false, true}) {
      for (const Choice &choice : {chooseForCPU(lanes, bf16Pairs), chooseGradForCPU(lanes)}) {
        const Schedule &sizes = choice.schedule;
        EXPECT_GT(sizes.blockM, 0);
        EXPECT_GT(sizes.blockN, 0);
        EXPECT_EQ(sizes.blockM % lanes, 0);
      }
    }
}
/// A machine that nobody has measured takes none of another's rows, but the widest block that fits.
TEST(ScheduleRule, UnmeasuredMachinesTakeWhatFits) {
  Machine half = getHopper();
  half.name = "half";
  half.sharedBytes /= 2;
  half.product.threads = half.warpgroupThreads = 64;
  half.product.rows = 32;
  EXPECT_TRUE(getRowNames(half).empty());
  for (int64_t d = 8; d <= 256; d += 8)
    for (int64_t dv : {d, int64_t(64)}) {
      GPUProblem problem{d, dv};
      Choice choice = chooseForCUDA(half, problem);
      EXPECT_EQ(choice.rule, "cuda-widest");
      EXPECT_EQ(choice.schedule.blockM, 64);
      GPUBlock block{d, dv, /*elementBytes=*/2, choice.schedule};
      EXPECT_EQ(refuseBlock(half, block), "") << d << " " << dv;
      // One step of keys more does not fit, or is more than the rows of two consumers.
      block.schedule.blockN += getKeyStep(half, d, dv);
      EXPECT_TRUE(block.schedule.blockN > 64 || !refuseBlock(half, block).empty() ||
                  !fitsRegisters(half, problem, block))
          << d << " " << dv;
      EXPECT_FALSE(chooseForFewRows(half, problem));
    }
  // Rows of a group are packed into one tile of its own, and other calls take the one way.
  std::vector<WayChoice> ways = chooseWays(half, {64, 64}, "auto", /*canPack=*/true);
  ASSERT_EQ(ways.size(), 5u);
  for (auto [i, way] : llvm::enumerate(ways)) {
    EXPECT_EQ(way.name, "packed" + std::to_string(2 << i));
    ASSERT_EQ(way.when.size(), 1u) << way.name;
    EXPECT_EQ(way.when[0][0].most, 32 / way.slots);
  }
  EXPECT_EQ(choosePacked(half, 4).when[0][0].most, 16);
}

/// GPUs of 99 KB: no block needs more, whatever the head dimensions and regions.
TEST(ScheduleRule, SmallMachinesTakeWhatFits) {
  for (llvm::StringRef name : {"sm_86", "sm_89", "sm_120a"}) {
    const Machine &machine = *findMachine(name);
    ASSERT_EQ(machine.sharedBytes, 101376);
    for (int64_t d = 8; d <= 256; d += 8)
      for (int64_t dv = 8; dv <= 256; dv += 8)
        for (unsigned flags = 0; flags < 8; ++flags)
          for (int64_t weight : {0, 1, 4, 16, 1000}) {
            GPUProblem problem{d, dv, /*isMasked=*/bool(flags & 1)};
            problem.hasFactors = problem.hasScore = flags & 2;
            problem.isRagged = flags & 4;
            problem.work.weight = weight;
            for (const Choice &choice :
                 {chooseForCUDA(machine, problem),
                  chooseForDecoding(machine, problem, /*blockN=*/0, /*isGiven=*/false)}) {
              GPUBlock block = makeBlock(problem, choice.schedule);
              SCOPED_TRACE(testing::Message() << name.str() << " D " << d << " Dv " << dv);
              ASSERT_EQ(refuseBlock(machine, block), "");
              ASSERT_LE(choice.schedule.resident * (getSharedBytes(machine, block) + 1024), 102400);
            }
          }
  }
}

/// Three parts of the widest heads are more than such a GPU has, and no size is named that fits.
TEST(ScheduleRule, SaysWhereNothingFits) {
  const Machine &machine = *findMachine("sm_86");
  auto refuse = [&](int64_t columns, int64_t parts) {
    Schedule schedule{.blockM = 128, .blockN = 16, .consumers = 2};
    return refuseBlock(machine, {columns, columns, 2, schedule, parts});
  };
  EXPECT_EQ(refuse(256, 3), "expected at most 101376 bytes of shared memory in a block on sm_86, "
                            "got 245880 for block_m 128, block_n 16 and stages 1; no block fits "
                            "these head dimensions");
  EXPECT_EQ(refuse(96, 3), "expected at most 101376 bytes of shared memory in a block on sm_86, "
                           "got 123000 for block_m 128, block_n 16 and stages 1; the nearest is "
                           "block_m 64, block_n 16 and stages 1");
}
