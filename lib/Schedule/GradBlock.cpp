//===- GradBlock.cpp - what a block of gradients takes of a GPU -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Schedule/GradBlock.h"
#include "lib/Machine/Reserves.h"
#include "lib/Schedule/GPUBlock.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace attn;
using llvm::formatv;

/// Addresses, coordinates, slots and what else a thread has beside tiles, with the rule's margin.
static constexpr int64_t kOtherRegisters = 32;

static int64_t getConsumers(const Machine &machine, const GradBlock &block) {
  return block.owned / machine.getWarpgroupRows() * (block.dividesSums ? 2 : 1);
}

Schedule attn::getSchedule(const Machine &machine, const GradBlock &block) {
  return {.blockM = block.rowsRun ? block.running : block.owned,
          .blockN = block.rowsRun ? block.owned : block.running,
          .stages = block.stages,
          .consumers = getConsumers(machine, block)};
}

bool attn::dividesSums(const Machine &machine, const Schedule &schedule, int64_t owned) {
  return schedule.consumers * machine.getWarpgroupRows() == 2 * owned;
}

GradBlock attn::withSchedule(const Machine &machine, GradBlock block, const Schedule &schedule) {
  block.owned = block.rowsRun ? schedule.blockN : schedule.blockM;
  block.running = block.rowsRun ? schedule.blockM : schedule.blockN;
  block.stages = schedule.stages;
  block.dividesSums = block.rowsRun && dividesSums(machine, schedule, block.owned);
  return block;
}

static int64_t getSumColumns(const GradBlock &block) {
  if (!block.rowsRun)
    return block.headDim;
  if (block.dividesSums)
    return std::max(block.headDim, block.valueDim);
  return (block.sumsKeys ? block.headDim : 0) + (block.sumsValues ? block.valueDim : 0);
}

/// Of a thread of a consumer for the sums, that of a tile among them, and for `quarters` of a tile
/// beside them: each of 128 has one half of every column of its 64 rows.
static int64_t getRegisters(const Machine &machine, const GradBlock &block, int64_t quarters) {
  auto perThread = [&](int64_t columns) { return machine.getTileRegisters(columns); };
  int64_t columns = std::max(block.headDim, block.valueDim);
  // Where it is made, one of the products is no longer read.
  int64_t ofTile = addsTiles(machine, block.parts, columns)
                       ? std::max(perThread(columns - block.running), int64_t(8))
                       : 0;
  return perThread(getSumColumns(block)) + ofTile + perThread(block.running) * quarters / 4;
}

/// A pass over keys whose tiles have as many rows as keys, and regions that keep nothing beside
/// them. Numbers of rows take no registers and what masks keep is short-lived, so that ptxas finds
/// a way with less than the margin: of 250 such programs none spills (bench/NOTES.md).
static bool isSquare(const GradBlock &block, const GradWork &work) {
  constexpr int64_t mostWork = 3;
  return block.rowsRun && block.sumsKeys && block.sumsValues && block.running == block.owned &&
         !work.hasScore && !work.hasFactor && !work.divides && work.maskWeight <= mostWork &&
         !(work.isMasked && (work.isListed || work.isRagged));
}

/// Whether products sum over padding. They do not start with the numbers of rows then
/// (AttnToTile/GradStep.cpp).
static bool isUneven(const Machine &machine, const GradBlock &block) {
  auto fillsSums = [&](int64_t columns) {
    return columns * block.elementBytes % machine.product.sumBytes == 0;
  };
  return block.rowsRun && !(fillsSums(block.headDim) && fillsSums(block.valueDim));
}

/// Quarters of a tile that one of 16 bits takes as an operand, or that of f32 as its parts, with
/// what is not split yet.
static int64_t getOperandQuarters(const GradBlock &block) {
  return block.parts > 1 ? 2 * block.parts + 4 : 2;
}

/// What the rule takes to be needed where nobody has counted registers of lowered programs
/// (Machine::otherRegisters), as ptxas tells (ExecutionAssemble): scores and gradients of
/// weights, half as much for one of them as an operand, and what regions keep, with numbers of rows
/// along the columns. Wide sums leave masks no registers to spare.
static int64_t getSafeRegisters(const Machine &machine, const GradBlock &block,
                                const GradWork &work) {
  // One product and the weights as they are handed over, besides the operand.
  int64_t products = block.dividesSums ? 4 + 2 : 4 + 4;
  int64_t quarters =
      products + getOperandQuarters(block) + (work.heldTiles ? 4 * work.heldTiles + 2 : 0);
  bool isPadded = isUneven(machine, block);
  if (isPadded)
    quarters += 6;
  // Addresses of what is read for each score, before it is there.
  if (work.gathersScore && !work.heldTiles && !block.rowsRun)
    quarters += 4;
  int64_t mask = std::min<int64_t>((block.dividesSums ? 5 : 4) * work.maskWeight, 48);
  if (work.hasScore && block.dividesSums)
    mask += 16;
  // Bounds of a loop for each kind of tile, beside addresses of wide or uneven tiles.
  bool isWide = std::max(block.headDim, block.valueDim) >= 192;
  if (work.isMasked && isWide && block.rowsRun && block.sumsKeys && !block.dividesSums)
    mask += 20;
  if (work.maskWeight > 0 && (isWide || isPadded) && !block.dividesSums)
    mask += 16;
  // Places in a list, for loops over both kinds of its tiles.
  bool readsMore = work.gathersMask && work.otherRanges > 0;
  if (work.isListed && work.isMasked && block.rowsRun && (isWide || readsMore))
    mask += kOtherRegisters;
  if (work.isMasked && work.hasFactor)
    mask += 12;
  // Addresses of three tiles for one.
  if (work.isMasked && block.parts > 1)
    mask += kOtherRegisters + 16;
  if (!block.rowsRun && block.parts > 1 && (work.isListed || work.isRagged))
    mask += kOtherRegisters;
  // Where sequences begin and end.
  if (work.isRagged)
    mask += isWide ? kOtherRegisters : 16;
  if (work.isMasked && work.gathersScore && !work.heldTiles)
    mask += 20;
  // Positions for a score that nobody keeps, or beside them one more number of each row.
  bool hasMoreNumbers = work.readsLow && !block.dividesSums;
  if (work.hasScore && !work.gathersScore && !work.heldTiles && (!block.rowsRun || hasMoreNumbers))
    mask += 16;
  // Where ptxas is known to find a way (ExecutionAssemble).
  int64_t others = block.addsQueries ? machine.product.registers : kOtherRegisters;
  if (!block.addsQueries && isSquare(block, work)) {
    others = machine.product.registers;
    mask = 0;
  }
  return getRegisters(machine, block, quarters) + others + mask;
}

/// What is needed in any case: both products, and one of their tiles as an operand.
static int64_t getLeastRegisters(const Machine &machine, const GradBlock &block) {
  int64_t products = block.dividesSums ? 4 : 4 + 4;
  return getRegisters(machine, block, products + getOperandQuarters(block));
}

static int64_t getBudget(const Machine &machine, const GradBlock &block) {
  return machine.getBudget(getConsumers(machine, block), /*stays=*/false).consumer;
}

/// Matrices that stay, and rings of those that run: one that is summed over both ways, and whose
/// columns do not fill whole products, has two places.
static int64_t countSharedBytes(const Machine &machine, const GradBlock &block) {
  auto getBytes = [&](int64_t rows, int64_t columns, bool isSummed) {
    return block.parts * getTileBytes(machine, rows, columns * block.elementBytes, isSummed);
  };
  auto getRing = [&](int64_t columns, bool isFactor) {
    int64_t bytes = getBytes(block.running, columns, /*isSummed=*/true);
    bool fillsProducts = columns * block.elementBytes % machine.product.sumBytes == 0;
    if (isFactor && !fillsProducts)
      bytes += getBytes(block.running, columns, /*isSummed=*/false);
    return bytes * block.stages;
  };
  // Weights alone need no values.
  bool hasValues = !block.rowsRun || block.sumsKeys;
  int64_t fixed = getBytes(block.owned, block.headDim, true) +
                  (hasValues ? getBytes(block.owned, block.valueDim, true) : 0);
  // The gradients of scores, and keys as their factor: as many columns as products have rows,
  // without what is no number.
  if (block.addsQueries)
    fixed +=
        getBytes(block.owned, block.running, false) +
        getBytes(block.owned, block.running == block.owned ? block.headDim : block.owned, true);
  // What one role hands to the other.
  if (block.dividesSums)
    fixed += getBytes(block.owned, block.running, false) * block.stages;
  // Barriers, and marks of what is read.
  return fixed + getRing(block.headDim, true) + getRing(block.valueDim, block.rowsRun) +
         machine.stageBytes;
}

/// Whether shared memory has room for a block, with rings of numbers of the rows that run.
static bool fitsShared(const Machine &machine, const GradBlock &block, const GradWork &work) {
  int64_t ring = llvm::alignTo(block.running * block.stages * sizeof(float), machine.stageBytes);
  int64_t numbers = block.rowsRun ? (work.readsLow ? 3 : 2) * ring : 0;
  return countSharedBytes(machine, block) + numbers <= machine.sharedBytes;
}

/// Whether sums and products leave a thread what one needs in any case, and where products sum over
/// padding, another tile and a half.
static bool fitsLeast(const Machine &machine, const GradBlock &block) {
  int64_t padding = isUneven(machine, block) ? machine.getTileRegisters(block.running) * 3 / 2 : 0;
  return getLeastRegisters(machine, block) + padding + machine.product.registers <=
         getBudget(machine, block);
}

/// Whether a mask does more than to bound the keys of a row from one side. Where sums are wide,
/// each further operation counts.
static bool isWork(const Machine &machine, const GradBlock &block, const GradWork &work) {
  bool isNarrow = std::max(block.headDim, block.valueDim) <= machine.getWarpgroupRows();
  return work.maskOperations > (isNarrow ? 4 : 1);
}

/// Registers of a thread that the count of tiles does not see (lib/Machine/Reserves.h). A first
/// reason and a second one add up.
static int64_t countOthers(const Machine &machine, const GradBlock &block, const GradWork &work) {
  constexpr const Reserves &reserves = kReserves;
  int64_t columns = std::max(block.headDim, block.valueDim);
  int64_t tile = machine.getTileRegisters(block.running);
  // Descriptors are more than there are uniform registers: of wide tiles that stay, or for two wide
  // sums.
  int64_t sums = block.dividesSums ? 0 : getSumColumns(block);
  bool isWide = columns > 3 * machine.getWarpgroupRows() || sums >= 6 * machine.getWarpgroupRows();
  // Several ranges have a loop each, with bounds of its own.
  bool isSome = work.maskOperations > reserves.some;
  bool hasRanges = work.otherRanges > 0 || isSome;
  // What masks read waits in registers where sums leave few, as what scores read for a derivative.
  // So do positions that a table tells, where the mask and the score have them and rows run.
  bool isNarrow = columns <= machine.getWarpgroupRows();
  bool hasTables = block.rowsRun && work.tablesOfScore > 0;
  bool reads = ((work.readsMask || work.gathersMask) && !isNarrow) || hasTables ||
               (work.gathersScore && work.derivesScores);
  // Constants and values between the steps of a function that takes dozens of instructions.
  bool hasFunction = work.hasFactor || work.isLong;
  int64_t first = hasRanges                                         ? reserves.ranges
                  : isWide || reads || isWork(machine, block, work) ? reserves.reads
                                                                    : 0;
  if (hasFunction)
    first =
        std::max(first, reserves.function + tile * (work.isLong && work.derivesScores ? 8 : 5) / 8);
  bool isMuch = work.maskOperations > reserves.many;
  bool keepsMore = (block.dividesSums && isSome) || work.keptScores > 1;
  // Ranges, and what is read or computed for each of them.
  bool readsMore =
      hasRanges && (reads || (work.otherRanges > 0 && work.maskOperations / 2 >= reserves.some));
  bool hasBoth = (isWide && hasFunction) || (reads && hasRanges) ||
                 (work.derivesScores && !block.rowsRun) || sums > 4 * machine.getWarpgroupRows();
  int64_t second = isMuch                ? reserves.manyOperations
                   : keepsMore           ? reserves.more
                   : isWide && readsMore ? reserves.wideRanges
                   : hasBoth             ? reserves.both
                                         : 0;
  // Products that sum over padding do not start with the numbers of rows.
  int64_t padding = isUneven(machine, block) ? tile : 0;
  // Both positions of a score, told by the call.
  bool hasPlaces = hasTables && (work.shiftsScore || (isNarrow && work.tablesOfScore > 1));
  int64_t places = hasPlaces ? reserves.both : 0;
  return machine.product.registers + first + second + places + padding;
}

/// Whether a count was compared with ptxas: not for elements of several factors, nor for rows of
/// sequences and tiles of lists, whose bounds, zeros and places are no tiles, nor for long
/// functions and factors of the widest heads.
bool attn::isCounted(const Machine &machine, const GradBlock &block, const GradWork &work) {
  bool isWidest = std::max(block.headDim, block.valueDim) > 3 * machine.getWarpgroupRows();
  return machine.otherRegisters > 0 && block.parts == 1 && !work.isRagged && !work.isListed &&
         !((work.isLong || work.hasFactor) && isWidest);
}

bool attn::fitsGradBlock(const Machine &machine, const GradBlock &block, const GradWork &work,
                         CountSpare countSpare) {
  if (!isCounted(machine, block, work))
    return fitsShared(machine, block, work) &&
           getSafeRegisters(machine, block, work) <= getBudget(machine, block);
  // What the sums and products alone take says enough of most blocks that do not fit.
  int64_t others = countOthers(machine, block, work);
  return fitsShared(machine, block, work) &&
         getBudget(machine, block) - getLeastRegisters(machine, block) >= others &&
         countSpare(block) >= std::max(others, machine.otherRegisters);
}

static int64_t getRunningStep(const Machine &machine, const GradBlock &block) {
  return getKeyStep(machine, block.headDim, block.valueDim, block.elementBytes);
}

/// Keys that run are a row of products, or two: tiles between them take longer than those of one
/// (bench/NOTES.md).
static bool isSlow(const Machine &machine, const GradBlock &block) {
  return !block.rowsRun && block.running > machine.getWarpgroupRows() &&
         block.running < 2 * machine.getWarpgroupRows();
}

/// The first of some sizes that fits, of which none fits before one that does not; 0 if none does.
static int64_t findFirst(llvm::ArrayRef<int64_t> sizes, llvm::function_ref<bool(int64_t)> fits) {
  // Sums and products tell the size in most cases.
  if (sizes.empty() || fits(sizes.front()))
    return sizes.empty() ? 0 : sizes.front();
  const int64_t *first = std::partition_point(sizes.begin() + 1, sizes.end(),
                                              [&](int64_t size) { return !fits(size); });
  return first == sizes.end() ? 0 : *first;
}

/// The most rows that run, with as many stages as that leaves; whether there is such a block.
static bool chooseRunning(const Machine &machine, GradBlock &block, const GradWork &work,
                          int64_t leastStages, CountSpare countSpare) {
  int64_t step = getRunningStep(machine, block), rows = machine.getWarpgroupRows();
  // A score that is read has an address of its own, which waits with it. Under a mask of several
  // bounds, wide tiles compute what the mask drops.
  bool isNarrow = block.rowsRun ? work.isLong && block.dividesSums
                                : work.gathersScore || isWork(machine, block, work);
  int64_t most = isNarrow && isCounted(machine, block, work) ? rows : 2 * rows;
  auto fits = [&](int64_t running, CountSpare count) {
    block.running = running;
    return fitsGradBlock(machine, block, work, count);
  };
  auto countMost = [&](const GradBlock &) { return machine.mostRegisters; };
  for (block.stages = std::min<int64_t>(2, machine.stages); block.stages >= leastStages;
       --block.stages) {
    llvm::SmallVector<int64_t> sizes;
    for (int64_t running = llvm::alignDown(most, step); running > 0; running -= step)
      if (fits(running, countMost) && !isSlow(machine, block))
        sizes.push_back(running);
    block.running = findFirst(sizes, [&](int64_t running) { return fits(running, countSpare); });
    if (block.running > 0)
      return true;
  }
  return false;
}

GradBlock attn::chooseGradBlock(const Machine &machine, GradBlock block, const GradWork &work,
                                CountSpare countSpare) {
  block.owned = 2 * machine.getWarpgroupRows();
  // Loops over several ranges keep addresses of all parts apart.
  bool keepsAddresses = block.parts > 1 && !block.rowsRun && work.otherRanges > 0;
  if (!keepsAddresses && chooseRunning(machine, block, work, /*leastStages=*/1, countSpare))
    return block;
  // What stays is three times as much in parts, and may be more than the machine has.
  block.stages = 1;
  block.running = getRunningStep(machine, block);
  if (block.parts > 1 || countSharedBytes(machine, block) > machine.sharedBytes) {
    block.owned = machine.getWarpgroupRows();
    if (chooseRunning(machine, block, work, /*leastStages=*/1, countSpare))
      return block;
  }
  block.stages = 1;
  block.running = getRunningStep(machine, block);
  return block;
}

std::optional<GradBlock> attn::chooseDividedBlock(const Machine &machine, GradBlock block,
                                                  GradWork work, CountSpare countSpare) {
  // Under a mask, sums over padding spill (bench/NOTES.md).
  if (!machine.hasRoles() || machine.product.form == Product::Form::Tensor || !block.rowsRun ||
      !block.sumsKeys || !block.sumsValues || block.parts > 1 || work.derivesScores ||
      work.hasFactor || work.isRagged || isUneven(machine, block))
    return std::nullopt;
  // Nobody keeps a score.
  work.heldTiles = 0;
  block.dividesSums = true;
  block.owned = machine.getWarpgroupRows();
  // With one stage the roles would wait for each other.
  if (!chooseRunning(machine, block, work, /*leastStages=*/2, countSpare) ||
      block.running < block.owned)
    return std::nullopt;
  return block;
}

/// Whether ptxas finds registers beside the product for queries, as some 1,500 programs tell
/// (bench/NOTES.md): in squares, or beside 64, 48 or 32 rows of a head that fills all rows.
static bool leavesRegisters(const Machine &machine, const GradBlock &block, const GradWork &work) {
  // One loop over lists of the widest heads takes 2 registers more than there are, and what a mask
  // reads takes some beside two.
  if (work.isListed && (!work.isMasked || work.gathersMask) &&
      block.headDim + block.valueDim > 3 * machine.getWarpgroupRows())
    return false;
  // More conditions are four loops, and one read after another takes addresses of both.
  if (work.rowConditions > 1 || work.chainsMask || (work.hasFactor && work.isMasked))
    return false;
  bool isOfOneRange = work.otherRanges == 0, computes = work.derivesScores && work.isLong;
  bool readsTwice = work.gathersScore && work.gathersMask;
  if (block.running < machine.getWarpgroupRows() && (isUneven(machine, block) || computes))
    return false;
  // Numbers say where sequences begin and end. 64 rows leave them registers where scores have
  // neither a mask nor a function, and 48 where they have.
  bool isBare = !work.isMasked && !work.hasScore;
  int64_t most = isBare ? machine.getWarpgroupRows() : 3 * machine.getWarpgroupRows() / 4;
  if (work.isRagged && block.running != most)
    return false;
  // In quarters of the rows of a warpgroup's products.
  switch (4 * block.running / machine.getWarpgroupRows()) {
  case 8:
    return isOfOneRange && !work.hasScore && !work.gathersMask && !(work.isListed && work.isMasked);
  case 4:
    return isOfOneRange && !work.hasFactor && !work.gathersScore && !work.derivesScores &&
           (!work.hasScore || (work.maskOperations <= 2 && !(work.isMasked && work.readsLow)));
  case 3:
    if (!isOfOneRange &&
        (work.otherRanges > 1 || work.hasScore || work.readsMask || work.maskOperations > 4))
      return false;
    if (work.derivesScores && work.isMasked &&
        (work.keptScores > 1 || work.searchesMask || work.maskOperations > 7))
      return false;
    return !readsTwice;
  default:
    // Without a score, two passes have wider products.
    return isOfOneRange && work.hasScore && !(work.searchesMask && work.keptScores > 1);
  }
}

std::optional<GradBlock> attn::chooseFusedBlock(const Machine &machine, GradBlock block,
                                                const GradWork &work) {
  // Additions by threads hold up products (bench/NOTES.md), and those in bulk take fragments.
  if (!machine.copy.addsInBulk || block.parts > 1 || machine.product.form == Product::Form::Tensor)
    return std::nullopt;
  block.addsQueries = true;
  block.owned = 2 * machine.getWarpgroupRows();
  block.stages = 2;
  // The sum has D in its rows, or in its columns where one warpgroup's rows have it all.
  bool isTransposed = block.headDim > machine.getWarpgroupRows();
  bool fillsFragments = block.headDim % kFragmentRows == 0;
  if (!block.sumsKeys || !block.sumsValues ||
      std::max(block.headDim, block.valueDim) > block.owned || (isTransposed && !fillsFragments))
    return std::nullopt;
  int64_t all = machine.getWarpgroupRows();
  int64_t filled[] = {all, all * 3 / 4, all / 2}, square[] = {2 * all};
  int64_t step = getRunningStep(machine, block);
  for (int64_t rows : isTransposed ? llvm::ArrayRef(filled) : llvm::ArrayRef(square)) {
    block.running = rows;
    if (rows % step == 0 && leavesRegisters(machine, block, work) && fitsLeast(machine, block) &&
        fitsShared(machine, block, work))
      return block;
  }
  return std::nullopt;
}

std::string attn::refuseGradBlock(const Machine &machine, const GradBlock &block) {
  auto refuse = [&](llvm::StringRef what, int64_t size, int64_t step, int64_t most) {
    return refuseSize(machine, what, size, step, most, " for gradients");
  };
  for (int64_t columns : {block.headDim, block.valueDim})
    if (std::string why =
            refuse("head dimensions", columns, machine.product.columnStep, machine.product.columns);
        !why.empty())
      return why;
  llvm::StringRef owned = block.rowsRun ? "block_n" : "block_m",
                  running = block.rowsRun ? "block_m" : "block_n";
  if (block.dividesSums && !(block.rowsRun && block.sumsKeys && block.sumsValues))
    return formatv("expected sums for keys and for values in blocks whose {0} rows are {1} "
                   "consumers', got one sum; the nearest is {2} consumers",
                   block.owned, getConsumers(machine, block), getConsumers(machine, block) / 2);
  int64_t mostOwned = (block.dividesSums ? 1 : 2) * machine.getWarpgroupRows();
  if (std::string why = refuse(owned, block.owned, machine.getWarpgroupRows(), mostOwned);
      !why.empty())
    return why;
  if (std::string why =
          refuse(running, block.running, getRunningStep(machine, block), machine.product.columns);
      !why.empty())
    return why;
  if (std::string why = refuse("stages", block.stages, 1, machine.stages); !why.empty())
    return why;
  int64_t registers = getLeastRegisters(machine, block) + machine.product.registers,
          budget = getBudget(machine, block);
  int64_t bytes = countSharedBytes(machine, block);
  if (registers <= budget && bytes <= machine.sharedBytes)
    return {};
  auto countLeast = [&](const GradBlock &each) {
    return getBudget(machine, each) - getLeastRegisters(machine, each);
  };
  GradBlock nearest = chooseGradBlock(machine, block, {}, countLeast);
  std::string end = "no block fits these head dimensions";
  if (fitsGradBlock(machine, nearest, {}, countLeast))
    end =
        formatv("the nearest is {0} {1} and stages {2}", running, nearest.running, nearest.stages);
  if (registers > budget)
    return formatv("expected sums and scores of gradients that fit the {0} registers of a thread "
                   "on {1}, got {2}; {3}",
                   budget, machine.name, registers, end);
  return formatv("expected a block of gradients that fits {0} bytes of shared memory on {1}, got "
                 "{2}; {3}",
                 machine.sharedBytes, machine.name, bytes, end);
}
