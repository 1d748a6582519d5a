//===- ScheduleRule.cpp - block sizes for a problem ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Machine/Pages.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/Policy.h"
#include "lib/Transforms/Attn/SearchModel.h"
#include "lib/Transforms/Attn/TileConditions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;

/// The transposed query (block_m x D) and a tile of probabilities (block_m x block_n) are read once
/// per few rows and should stay in the first-level cache, 32 KiB or more. Pairs of bf16 halve both
/// and make packing the values, once per tile, worth amortising over more rows.
Choice attn::chooseForCPU(int64_t lanes, bool bf16Pairs) {
  if (bf16Pairs)
    return {{.blockM = 128, .blockN = 64}, "cpu-bf16-pairs"};
  // Sixteen registers of 8 lanes hold 6 x 2 accumulators; 48 and 96 divide evenly by them.
  if (lanes == 8)
    return {{.blockM = 48, .blockN = 96}, "cpu-8-lanes"};
  return {{.blockM = 64, .blockN = 64}, "cpu-f32"};
}

/// Sums over rows and over keys alike load and store their accumulators once a tile, so that tiles
/// are long both ways; those of D = 128 stay in a second-level cache of 512 KiB.
Choice attn::chooseGradForCPU(int64_t lanes) {
  if (lanes == 8)
    return {{.blockM = 96, .blockN = 96}, "cpu-grad-8-lanes"};
  return {{.blockM = 64, .blockN = 64}, "cpu-grad"};
}

//===----------------------------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------------------------===//

GPUProblem attn::getGPUProblem(AttentionOp attention, int64_t splits) {
  auto paged = attention.getKey().getDefiningOp<PagedOp>();
  GPUProblem problem = {attention.getHeadDim(),
                        attention.getValueDim(),
                        !attention.getMask().empty(),
                        readsTensors(attention.getScore()),
                        measureRegions(attention),
                        splits,
                        hidesFullTiles(attention.getMask()),
                        bool(getFactor(attention.getScore())),
                        !attention.getScore().empty(),
                        paged ? paged.getPageSize() : 0,
                        findRagged(attention.getQuery()) || findRagged(attention.getKey())};
  auto scored = cast<ScoredOpInterface>(attention.getOperation());
  problem.cell = findCell(attention.getMask());
  mlir::OwningOpRef<mlir::Operation *> copy =
      problem.cell ? copyInCell(scored, *problem.cell) : nullptr;
  problem.factors = getFactors(attention.getQuery().getType().getElementTypeBitWidth());
  if (copy)
    problem.workInCell = measureRegions(copy.get());
  else
    problem.cell.reset();
  return problem;
}

/// Of a mask whose operations are a few comparisons.
static constexpr int64_t kMostWork = 4;

/// Whether regions read more than where rows stand.
static bool gathersBeyondRows(const GPUProblem &problem) {
  return problem.work.gathers && !problem.work.gathersRowsAlone;
}

static bool isWindow(const GPUProblem &problem) {
  return problem.isMasked && problem.work.scoreConditions >= 2 && !gathersBeyondRows(problem) &&
         problem.work.weight <= kMostWork;
}

static bool isEdge(const GPUProblem &problem) {
  return problem.isMasked && problem.work.weight <= 1 && !problem.scoreReadsTensors &&
         !problem.hasFactors;
}

static unsigned getTraits(const GPUProblem &problem) {
  return (problem.isMasked ? Masked : 0) |
         (problem.isMasked && problem.scoreReadsTensors ? BiasUnderMask : 0) |
         (gathersBeyondRows(problem) ? Gathers : 0) | (problem.work.isLong ? Long : 0) |
         (problem.work.gathersRowsAlone ? RowTables : 0) |
         (problem.splits > 1 || problem.fixedSplit ? Split : 0) | (isWindow(problem) ? Window : 0) |
         (isEdge(problem) ? Edge : 0) | (problem.valueDim > 128 ? WideValues : 0) |
         (problem.hasFactors                              ? Factors
          : !problem.isMasked && problem.work.weight == 0 ? Plain
                                                          : 0);
}

/// Blocks stay where that is measured to be faster (bench/results/gpu-stay.json): under masks,
/// whose tiles of rows differ in work, and unless registers are few: what is read by position waits
/// in them, but for distances, of which half are the same.
static bool doBlocksStay(const Row &row, unsigned traits, const RegionWork &work) {
  bool canStay = (traits & Masked) && !(traits & (Long | Split)) && !work.gathersApart;
  return canStay && work.weight <= (traits & BiasUnderMask ? row.mostBiased : row.mostStaying);
}

/// Whether a row holds for a problem.
static bool holds(const Row &row, const GPUProblem &problem, unsigned traits) {
  return std::max(problem.headDim, problem.valueDim) <= row.columns &&
         (!row.any || (traits & row.any)) && !(traits & row.none);
}

/// Whether rows of heads or values are wider than a tile of 128 columns.
static bool isWide(const GPUProblem &problem) {
  return std::max(problem.headDim, problem.valueDim) > 128;
}

/// The most keys up to `blockN`, in steps, of which a page holds a multiple, or the other way
/// round: then boxes are as large as a page or a tile. There may be none, and boxes are smaller.
/// Threads gather rows of any pages as well as of others.
static int64_t fitToPages(const Machine &machine, const GPUProblem &problem, int64_t blockN,
                          int64_t step) {
  constexpr int64_t kElementBytes = 2;
  if (!problem.pageSize || !copiesPagesAsBoxes(machine, problem.pageSize, kElementBytes))
    return blockN;
  for (int64_t keys = blockN; keys >= step; keys -= step)
    if (problem.pageSize % keys == 0 || keys % problem.pageSize == 0)
      return keys;
  return blockN;
}

/// A row's schedule for a problem, with what all rows have in common. Weights of a score function
/// are late already, and a query that is kept whole is not read at all.
static Choice adapt(const Row &row, const Machine &machine, const GPUProblem &problem) {
  Choice choice{row.schedule, row.rule};
  Schedule &schedule = choice.schedule;
  schedule.stages = getPolicy(machine).stages;
  schedule.consumers = schedule.blockM / machine.getWarpgroupRows();
  schedule.hold &= !problem.hasScore;
  if (problem.headDim <= schedule.keep)
    schedule.keep = 0;
  return choice;
}

/// Tiles are listed where the list is the only way to know them. Parts of split keys are short, and
/// each would need a list of its own.
static bool doListsPay(const GPUProblem &problem) {
  return problem.hidesFullTiles && problem.splits == 1 && !problem.fixedSplit;
}

/// A block of the problem.
static GPUBlock describe(const GPUProblem &problem, const Schedule &schedule = {}) {
  return {problem.headDim, problem.valueDim, problem.factors.bytes, schedule,
          problem.factors.parts};
}

/// The widest block of a machine that nobody has measured: two consumers, or one, and as many keys
/// as registers and shared memory have room for, up to the rows of two.
static Choice chooseWidest(const Machine &machine, const GPUProblem &problem) {
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  int64_t rows = machine.getWarpgroupRows(), most = llvm::alignTo(2 * rows, step);
  GPUBlock block = describe(problem);
  Schedule &schedule = block.schedule;
  for (int64_t stages : {2, 1})
    for (int64_t consumers : {2, 1})
      for (int64_t keys = most; keys > 0; keys -= step) {
        schedule = {
            .blockM = consumers * rows, .blockN = keys, .stages = stages, .consumers = consumers};
        if (refuseBlock(machine, block).empty() && fitsRegisters(machine, problem, block))
          return {schedule, "cuda-widest"};
      }
  // The least that there is; passes say what does not fit.
  return {{.blockM = rows, .blockN = step}, "cuda-widest"};
}

/// Elements of 8 bits, in tiles that fill whole stages and as few stages as fit.
static Choice chooseForBytes(const Machine &machine, const GPUProblem &problem) {
  llvm::ArrayRef<Row> rows = getPolicy(machine).byteRows;
  if (rows.empty())
    return chooseWidest(machine, problem);
  unsigned traits = getTraits(problem);
  const Row *row = llvm::find_if(rows, [&](const Row &each) {
    return holds(each, problem, traits) && problem.work.weight <= each.mostWork;
  });
  Choice choice = adapt(*std::min(row, rows.end() - 1), machine, problem);
  GPUBlock block = describe(problem, choice.schedule);
  block.schedule.blockN =
      llvm::alignTo(block.schedule.blockN,
                    getKeyStep(machine, problem.headDim, problem.valueDim, problem.factors.bytes));
  block.schedule.lists = doListsPay(problem);
  while (block.schedule.stages > 1 && !refuseBlock(machine, block).empty())
    --block.schedule.stages;
  return {block.schedule, choice.rule};
}

/// About the registers of a thread whose warp multiplies: sums, scores and weights of all of its
/// rows, fragments of operands, and what regions and addresses take, with those of copies where no
/// other role has them.
static int64_t countWarpRegisters(const Machine &machine, const GPUProblem &problem,
                                  const Schedule &schedule, int64_t steps) {
  constexpr int64_t kAddresses = 18, kCopies = 6, kFragments = 8, kRowNumbers = 8, kCounters = 4;
  // The parts of weights are as many registers as they, and half; factors are as many beside them.
  int64_t parts = problem.factors.parts > 1 ? schedule.blockN * 3 / 4 : 0;
  if (problem.hasFactors)
    parts += schedule.blockN / 2 + kCounters;
  int64_t sums = addsTiles(machine, problem.factors.parts, problem.valueDim) ? 2 : 1;
  return steps * (sums * problem.valueDim / 2 + schedule.blockN / 2 + parts + kRowNumbers + 4) +
         kFragments + kAddresses + (machine.hasRoles() ? 0 : kCopies) +
         std::min<int64_t>(2 * problem.work.weight, 48);
}

/// Whether a block fits a machine whose warps multiply, so many of its rows to each.
static bool fitsWarps(const Machine &machine, const GPUProblem &problem, const GPUBlock &block,
                      int64_t steps) {
  const Schedule &schedule = block.schedule;
  // Beside roles, marks of what a mask leaves share a place with barriers.
  bool hasMarks = machine.hasRoles() && (problem.isMasked || problem.pageSize || problem.isRagged);
  int64_t bytes = getSharedBytes(machine, block);
  if (hasMarks)
    bytes = llvm::alignTo(bytes, machine.stageBytes);
  int64_t budget =
      std::min(machine.getBudget(schedule.consumers, /*stays=*/false, schedule.resident).consumer,
               machine.mostRegisters);
  int64_t mostKeys = problem.isMasked ? getPolicy(machine).mostMaskedKeys : schedule.blockN;
  return refuseBlock(machine, block).empty() && bytes <= machine.getBlockBytes(schedule.resident) &&
         schedule.blockN <= mostKeys &&
         countWarpRegisters(machine, problem, schedule, steps) <= budget;
}

/// A machine whose warps multiply: as many rows a warp as registers allow, since warps read keys
/// and values from shared memory for all of their rows at a time, and two blocks, so that one
/// multiplies while the other waits, or one of two consumers. Steps of few keys scale sums often.
static Choice chooseForWarps(const Machine &machine, const GPUProblem &problem) {
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  GPUBlock block = describe(problem);
  Schedule &schedule = block.schedule;
  for (int64_t least : {2 * machine.product.rows, machine.product.rows})
    for (int64_t resident : {2, 1})
      for (int64_t steps = machine.product.steps; steps > 0; --steps)
        for (int64_t consumers : {3 - resident, resident})
          for (int64_t keys = 2 * machine.getWarpgroupRows(); keys >= least; keys /= 2) {
            schedule = {.blockM = consumers * steps * machine.getWarpgroupRows(),
                        .blockN = int64_t(llvm::alignTo(keys, step)),
                        .consumers = consumers,
                        .slack = 0,
                        .resident = resident};
            if (!fitsWarps(machine, problem, block, steps))
              continue;
            schedule.lists = doListsPay(problem);
            return {schedule, "cuda-warps"};
          }
  return chooseWidest(machine, problem);
}

/// A machine with tensor memory: two consumers, of which one multiplies while the other computes
/// weights, and a row of scores for each thread. A sum is scaled where it is, which costs more than
/// elsewhere: maxima may lag by 2^8, of which no weight of 16 bits loses a digit.
static Choice chooseForTensorMemory(const Machine &machine, const GPUProblem &problem) {
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  int64_t rows = machine.getWarpgroupRows();
  GPUBlock block = describe(problem);
  Schedule &schedule = block.schedule;
  constexpr int64_t kSlack = 8;
  // A thread has all numbers of a row. Factors are as many as weights, and what regions read for
  // each score takes some.
  const RegionWork &work = problem.work;
  bool isLong = problem.hasFactors || work.gathers || work.isLong || work.weight > kMostWork;
  int64_t most = isLong ? rows / 2 : rows;
  for (int64_t consumers : {2, 1})
    for (int64_t stages : {2, 1})
      for (int64_t keys = llvm::alignDown(most, step); keys > 0; keys -= step) {
        schedule = {.blockM = consumers * rows,
                    .blockN = keys,
                    .stages = stages,
                    .consumers = consumers,
                    .slack = kSlack};
        // Small steps of one of two consumers are worse than whole ones of one.
        if (!refuseBlock(machine, block).empty() || (consumers > 1 && keys < rows / 2))
          continue;
        schedule.lists = doListsPay(problem);
        return {schedule, "cuda-tensor-memory"};
      }
  return chooseWidest(machine, problem);
}

/// Lets tiles lie in cells: as many keys, in steps, and consumers as a cell has a multiple of.
/// False if there are none.
static bool fitToCell(const Machine &machine, Cell cell, int64_t step, Schedule &schedule) {
  int64_t rows = machine.getWarpgroupRows();
  while (schedule.blockN > 0 && cell.keys % schedule.blockN != 0)
    schedule.blockN -= step;
  while (schedule.blockM > 0 && cell.rows % schedule.blockM != 0)
    schedule.blockM -= rows;
  schedule.consumers = schedule.blockM / rows;
  return schedule.blockM > 0 && schedule.blockN > 0;
}

/// Lets two blocks of one consumer, as in decoding, fill what is left of a multiprocessor, with 64
/// keys at most and as many stages as that leaves, if registers and shared memory do.
static void addResident(const Machine &machine, const GPUProblem &problem, Schedule &schedule) {
  if (isWide(problem) || problem.hasFactors || problem.workInCell.isLong)
    return;
  GPUBlock block = describe(problem, schedule);
  block.schedule.resident = 2;
  block.schedule.hold = false;
  block.schedule.keep = 0;
  block.schedule.blockN = std::min(schedule.blockN, machine.getWarpgroupRows());
  auto isTooLarge = [&] {
    return getSharedBytes(machine, block) > machine.getBlockBytes(block.schedule.resident);
  };
  while (block.schedule.stages > 1 && isTooLarge())
    --block.schedule.stages;
  if (!isTooLarge() && refuseBlock(machine, block).empty())
    schedule = block.schedule;
}

/// Where reads of cells decide, the schedule of what is left of the mask, in tiles of cells; that
/// of masks even where nothing is left, since the keys of others are no power of two. Rows of one
/// consumer are few, but the mask by element is more than that costs.
static std::optional<Choice> chooseInCells(const Machine &machine, const GPUProblem &problem) {
  if (!problem.cell || problem.splits > 1 || problem.fixedSplit ||
      getPolicy(machine).rows.empty() || problem.factors.parts > 1 || problem.factors.bytes == 1)
    return std::nullopt;
  GPUProblem left = problem;
  left.cell.reset();
  left.work = problem.workInCell;
  Choice choice = chooseForCUDA(machine, left);
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  Schedule &schedule = choice.schedule;
  if (!fitToCell(machine, *problem.cell, step, schedule))
    return std::nullopt;
  schedule.stay = schedule.recompute = false;
  schedule.tail = 0;
  schedule.lists = true;
  schedule.apart = false;
  if (schedule.consumers == 1)
    addResident(machine, problem, schedule);
  return choice;
}

Choice attn::chooseForCUDA(const Machine &machine, const GPUProblem &problem) {
  if (auto choice = chooseInCells(machine, problem))
    return *choice;
  llvm::ArrayRef<Row> rows = getPolicy(machine).rows;
  if (machine.product.form == Product::Form::Registers)
    return chooseForWarps(machine, problem);
  if (machine.product.form == Product::Form::Tensor && problem.factors.parts == 1)
    return chooseForTensorMemory(machine, problem);
  if (problem.factors.bytes == 1)
    return chooseForBytes(machine, problem);
  // Nobody has measured elements of several factors.
  if (rows.empty() || problem.factors.parts > 1)
    return chooseWidest(machine, problem);
  unsigned traits = getTraits(problem);
  const Row *row =
      llvm::find_if(rows, [&](const Row &each) { return holds(each, problem, traits); });
  // Wider heads than any are refused; the last row is as good as any other.
  row = std::min(row, rows.end() - 1);
  Choice choice = adapt(*row, machine, problem);
  Schedule &schedule = choice.schedule;
  // What regions do beyond `mostWork` takes keys, as 900 random attentions tell (one spills, 4
  // bytes). One step of keys is the least there is.
  int64_t excess = std::clamp<int64_t>(problem.work.weight - row->mostWork, 0, 12);
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  // What clears the ends of tiles of views lives together with wide accumulators, or with a
  // window's bounds (AttnToTile/OnlineAttention.cpp).
  bool isView = problem.pageSize || problem.isRagged || problem.fixedSplit;
  bool clears = isView && (isWide(problem) || (traits & Window));
  int64_t narrowed = llvm::alignDown(schedule.blockN - 16 * llvm::divideCeil(excess, 6), step);
  schedule.blockN = fitToPages(machine, problem, std::max(narrowed, step), step);
  // One that stays would ask for a sequence in each turn, by addresses that registers have to hold.
  schedule.stay = doBlocksStay(*row, traits, problem.work) && !clears && !problem.isRagged;
  if (!schedule.stay) {
    schedule.tail = 0;
    schedule.recompute = false;
    schedule.lists = doListsPay(problem);
  }
  schedule.hold &= !(traits & (Long | Split)) && !clears;
  if (clears)
    schedule.keep = 0;
  schedule.apart &= problem.isMasked;
  return choice;
}

std::optional<LengthChoice> attn::chooseForLength(const Machine &machine,
                                                  const GPUProblem &problem) {
  // Blocks of short calls have no registers for the bounds of sequences where heads are wide.
  if ((problem.isRagged && isWide(problem)) || problem.factors.parts > 1)
    return std::nullopt;
  unsigned traits = getTraits(problem);
  llvm::ArrayRef<LengthRow> rows = getPolicy(machine).lengthRows;
  const LengthRow *row =
      llvm::find_if(rows, [&](const LengthRow &each) { return holds(each.row, problem, traits); });
  if (row == rows.end() || problem.work.weight > row->row.mostWork ||
      std::max(problem.headDim, problem.valueDim) < row->leastColumns)
    return std::nullopt;
  LengthChoice length{adapt(row->row, machine, problem), row->mostRows, row->mostKeys, row->either};
  int64_t &blockN = length.choice.schedule.blockN;
  blockN =
      fitToPages(machine, problem, blockN, getKeyStep(machine, problem.headDim, problem.valueDim));
  return length;
}

/// Of a table of calls with few rows or few keys.
static std::optional<Choice> chooseForFew(llvm::ArrayRef<Row> rows, const Machine &machine,
                                          const GPUProblem &problem) {
  unsigned traits = getTraits(problem);
  const Row *row =
      llvm::find_if(rows, [&](const Row &each) { return holds(each, problem, traits); });
  if (row == rows.end() || problem.factors.parts > 1)
    return std::nullopt;
  Choice choice = adapt(*row, machine, problem);
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  choice.schedule.blockN =
      fitToPages(machine, problem, int64_t(llvm::alignTo(choice.schedule.blockN, step)), step);
  return choice;
}

std::optional<Choice> attn::chooseForFewRows(const Machine &machine, const GPUProblem &problem) {
  return chooseForFew(getPolicy(machine).fewRows, machine, problem);
}

std::optional<Choice> attn::chooseForFewKeys(const Machine &machine, const GPUProblem &problem) {
  return chooseForFew(getPolicy(machine).narrowRows, machine, problem);
}

llvm::SmallVector<llvm::StringRef> attn::getRowNames(const Machine &machine) {
  const Policy &policy = getPolicy(machine);
  llvm::SmallVector<llvm::StringRef> names;
  for (llvm::ArrayRef<Row> table : {policy.rows, policy.fewRows, policy.narrowRows})
    for (const Row &row : table)
      names.push_back(row.rule);
  for (const LengthRow &row : policy.lengthRows)
    names.push_back(row.row.rule);
  return names;
}

/// Two blocks leave neither without work where the other begins or ends, which is 1 to 2 % of a
/// call with 8192 keys a head; their threads have 216 registers for 240, and wide heads no room for
/// two rings.
static int64_t countDecodingBlocks(const GPUProblem &problem, bool isGiven) {
  return isGiven || isWide(problem) || problem.hasFactors || problem.work.isLong ? 1 : 2;
}

/// Few keys where functions, factors or much work live beside them: ptxas spills otherwise. Of two
/// blocks as many as make the fewest and the largest tiles of a ring.
static int64_t getDecodingKeys(const GPUProblem &problem, int64_t resident) {
  constexpr int64_t mostWork = 9;
  int64_t columns = std::max(problem.headDim, problem.valueDim);
  if (resident > 1)
    return columns <= 64 ? 96 : 80;
  if (problem.hasFactors ||
      (isWide(problem) && (problem.work.isLong || problem.work.weight > mostWork)))
    return 32;
  if (problem.work.isLong)
    return 48;
  return columns <= 64 ? 128 : 64;
}

Choice attn::chooseForDecoding(const Machine &machine, const GPUProblem &problem, int64_t blockN,
                               bool isGiven) {
  // Eight stages are more than memory needs in flight.
  const int64_t kMostStages = std::min<int64_t>(8, machine.stages);
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim, problem.factors.bytes);
  int64_t resident = countDecodingBlocks(problem, isGiven);
  if (!blockN)
    blockN = fitToPages(
        machine, problem,
        std::max<int64_t>(step, llvm::alignDown(getDecodingKeys(problem, resident), step)), step);
  GPUBlock block = describe(problem, {.blockM = machine.getWarpgroupRows(),
                                      .blockN = blockN,
                                      .stages = kMostStages,
                                      .resident = resident});
  // Tiles of pages clear what a mask leaves at their ends, by marks that have a place of their own.
  constexpr int64_t kPlace = 1024;
  // Those of sequences do so without one too.
  bool hasMarks =
      problem.isRagged || ((problem.pageSize || problem.fixedSplit) && problem.isMasked);
  int64_t marks = hasMarks ? kPlace : 0;
  Schedule &schedule = block.schedule;
  auto isTooLarge = [&] {
    return getSharedBytes(machine, block) + marks > machine.getBlockBytes(schedule.resident);
  };
  while (schedule.stages > 1 && isTooLarge())
    --schedule.stages;
  // Some machines have no room for as many keys, or for two blocks.
  while (!isGiven && schedule.blockN > step && isTooLarge())
    schedule.blockN -= step;
  while (schedule.resident > 1 && isTooLarge())
    --schedule.resident;
  return {block.schedule, "cuda-decode"};
}

//===----------------------------------------------------------------------------------------===//
// Fixed splits
//===----------------------------------------------------------------------------------------===//

int64_t attn::fitToParts(int64_t fixedSplit, int64_t step, int64_t most) {
  for (int64_t keys = llvm::alignDown(most, step); keys > step; keys -= step)
    if (fixedSplit % keys == 0)
      return keys;
  return step;
}

int64_t attn::chooseKeysOfParts(const Machine &machine, const GPUProblem &problem) {
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim, problem.factors.bytes);
  int64_t most =
      std::min(chooseForDecoding(machine, problem, /*blockN=*/0, /*isGiven=*/false).schedule.blockN,
               chooseForCUDA(machine, problem).schedule.blockN);
  for (int64_t keys = llvm::alignDown(most, step); keys > step; keys -= step)
    if (problem.fixedSplit % keys == 0 && fitToPages(machine, problem, keys, step) == keys)
      return keys;
  return fitToParts(problem.fixedSplit, step, most);
}
