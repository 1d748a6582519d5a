//===- ScheduleRule.cpp - block sizes for a problem ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "lib/Transforms/Attn/GPUBlock.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;

/// The transposed query (block_m x D) and a tile of probabilities (block_m x block_n) are read once
/// per few rows and should stay in the first-level cache, 32 KiB or more. Pairs of bf16 halve both
/// and make packing the values, once per tile, worth amortising over more rows.
BlockSizes attn::chooseForCPU(int64_t lanes, bool bf16Pairs) {
  if (bf16Pairs)
    return {128, 64, 1, "cpu-bf16-pairs"};
  // Sixteen registers of 8 lanes hold 6 x 2 accumulators; 48 and 96 divide evenly by them.
  if (lanes == 8)
    return {48, 96, 1, "cpu-8-lanes"};
  return {64, 64, 1, "cpu-f32"};
}

/// Sums over rows and over keys alike load and store their accumulators once a tile, so that tiles
/// are long both ways; those of D = 128 stay in a second-level cache of 512 KiB.
BlockSizes attn::chooseGradForCPU(int64_t lanes) {
  if (lanes == 8)
    return {96, 96, 1, "cpu-grad-8-lanes"};
  return {64, 64, 1, "cpu-grad"};
}

//===----------------------------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------------------------===//

GPUProblem attn::getGPUProblem(AttentionOp attention, int64_t splits) {
  return {attention.getHeadDim(),
          attention.getValueDim(),
          !attention.getMask().empty(),
          readsTensors(attention.getScore()),
          measureRegions(attention),
          splits,
          hidesFullTiles(attention.getMask()),
          bool(getFactor(attention.getScore())),
          !attention.getScore().empty()};
}

/// What of a problem decides between rows of the table.
enum Trait : unsigned {
  Masked = 1,
  BiasUnderMask = 2,
  Gathers = 4,
  Long = 8,
  Split = 16,
  /// Neither a mask nor a score.
  Plain = 32,
  /// Weights have factors, which are made while weights and the accumulator live.
  Factors = 64,
  /// The mask bounds keys from both sides, and does little besides: a window, whose rows have few
  /// keys whatever the length.
  Window = 128,
  /// A mask of one comparison, as causal ones are, and no score: full tiles have nothing but
  /// products and exponentials, whose energy counts.
  Edge = 256,
  /// Values of more than 128 columns.
  WideValues = 512
};

static bool isWindow(const GPUProblem &problem) {
  constexpr int64_t kMostWork = 4;
  return problem.isMasked && problem.work.scoreConditions >= 2 && !problem.work.gathers &&
         problem.work.weight <= kMostWork;
}

static bool isEdge(const GPUProblem &problem) {
  return problem.isMasked && problem.work.weight <= 1 && !problem.scoreReadsTensors &&
         !problem.hasFactors;
}

static unsigned getTraits(const GPUProblem &problem) {
  return (problem.isMasked ? Masked : 0) |
         (problem.isMasked && problem.scoreReadsTensors ? BiasUnderMask : 0) |
         (problem.work.gathers ? Gathers : 0) | (problem.work.isLong ? Long : 0) |
         (problem.splits > 1 ? Split : 0) | (isWindow(problem) ? Window : 0) |
         (isEdge(problem) ? Edge : 0) | (problem.valueDim > 128 ? WideValues : 0) |
         (problem.hasFactors                              ? Factors
          : !problem.isMasked && problem.work.weight == 0 ? Plain
                                                          : 0);
}

namespace {
/// A row holds for D and Dv up to `columns`, problems with one of the traits `any` (0: all) and
/// none of `none`.
struct Row {
  int64_t columns;
  unsigned any, none;
  int64_t blockM, blockN;
  /// The most that regions may do beside so many keys without spills.
  int64_t mostWork;
  llvm::StringLiteral rule;
  /// The most that they may do where blocks stay, under a mask alone; blocks of others go.
  int64_t mostStaying = -1;
  /// 0: a step scales where a maximum rose; -1: every step scales. Rows have no other slack, since
  /// with one errors are greater than those of exact maxima.
  int64_t slack = -1;
  /// As mostStaying, where scores read tensors too.
  int64_t mostBiased = -1;
  /// Of blocks that stay, how many more for each multiprocessor come behind them.
  int64_t tail = 0;
  /// Whether blocks that stay recompute what their inner loops do not read.
  bool recompute = false;
  /// Whether blocks without a score function hold a stage of keys until there are weights.
  bool hold = false;
  /// Whether consumers begin apart, under a mask.
  bool apart = false;
  /// Of a query of more columns, those that consumers keep in registers.
  int64_t keep = 0;

  constexpr Row recomputing() const {
    Row row = *this;
    row.recompute = true;
    return row;
  }
  constexpr Row holding() const {
    Row row = *this;
    row.hold = true;
    return row;
  }
  constexpr Row beginningApart() const {
    Row row = *this;
    row.apart = true;
    return row;
  }
  constexpr Row keeping(int64_t count) const {
    Row row = *this;
    row.keep = count;
    return row;
  }
};
} // namespace

/// The first row that holds decides. A warpgroup for each 64 rows. Keys so that the query, two
/// stages of keys and two of values fit 227 KiB, and scores, weights, accumulator and what the
/// regions compute fit the registers: 240 in each thread of two warpgroups, 160 of three. Measured
/// on an H200 (bench/NOTES.md); where a mask cuts tiles, narrow ones waste less. Keys are split
/// where rows are few: three warpgroups would mostly compute rows that do not exist.
static constexpr Row kHopperRows[] = {
    {80, Factors, 0, 128, 96, 17, "cuda-factors"},
    {192, Factors, 0, 128, 80, 17, "cuda-factors"},
    {256, Factors, 0, 128, 64, 15, "cuda-factors"},
    Row{64, Long, Gathers | Split, 192, 96, 9, "cuda-d64"}.beginningApart(),
    Row{64, BiasUnderMask, Gathers | Split, 192, 112, 9, "cuda-d64"}.beginningApart(),
    {64, Window, Split, 128, 128, 4, "cuda-d64-window", 4},
    Row{64, Masked, Gathers | Split, 192, 128, 9, "cuda-d64", 1, 0}.beginningApart(),
    {64, 0, Gathers | Split, 192, 128, 9, "cuda-d64"},
    {96, Plain, Split, 192, 112, 0, "cuda-d96", -1, 0},
    {128, Plain, Split, 192, 80, 0, "cuda-d128", -1, 0},
    Row{128, Edge, Gathers | Long | Split, 128, 128, 17, "cuda-d128-edge", 1, 0}.holding(),
    {128, Long, 0, 128, 112, 17, "cuda-d128"},
    Row{128, BiasUnderMask, Long | Split, 128, 128, 17, "cuda-d128-bias", 5, -1, 13, 2}
        .recomputing(),
    Row{128, 0, 0, 128, 128, 17, "cuda-d128", 5}.holding(),
    Row{192, Edge, Gathers | Long | Split | WideValues, 128, 128, 9, "cuda-d192-edge-narrow", 1, 0,
        -1, 1}
        .holding(),
    Row{192, Edge, Gathers | Long | Split, 128, 112, 9, "cuda-d192-edge", 1, 0, -1, 2}.holding(),
    Row{192, Plain, Split | WideValues, 128, 128, 0, "cuda-d192-narrow", -1, 0}.holding().keeping(
        128),
    Row{192, Plain, Split, 128, 96, 0, "cuda-d192", -1, 0}.holding(),
    {192, Long | Gathers, 0, 128, 64, 21, "cuda-d192"},
    {192, 0, 0, 128, 96, 9, "cuda-d192"},
    {256, Long | Gathers, 0, 128, 48, 21, "cuda-d256"},
    Row{256, Edge, Gathers | Long | Split, 128, 64, 7, "cuda-d256-edge", 1, 0, -1, 2}
        .recomputing()
        .keeping(48),
    Row{256, Plain, Split, 128, 80, 0, "cuda-d256", -1, 0}.keeping(96),
    {256, Masked, 0, 128, 64, 7, "cuda-d256", 1, 0},
    {256, 0, 0, 128, 80, 15, "cuda-d256"}};
static constexpr int64_t kHopperStages = 2;

/// Blocks stay where that is measured to be faster (bench/results/gpu-stay.json): under masks,
/// whose tiles of rows differ in work, and unless registers are few: what is read by position waits
/// in them, but for distances, of which half are the same.
static bool doBlocksStay(const Row &row, unsigned traits, const RegionWork &work) {
  bool canStay = (traits & Masked) && !(traits & (Long | Split)) && !work.gathersApart;
  return canStay && work.weight <= (traits & BiasUnderMask ? row.mostBiased : row.mostStaying);
}

namespace {
/// As Row, for D or Dv of `leastColumns` at least, and for calls that are short, or for those that
/// are not. All of its blocks stay.
struct LengthRow {
  int64_t leastColumns, columns;
  unsigned any, none;
  int64_t blockM, blockN;
  /// The most that regions may do; for what does more there is one way.
  int64_t mostWork;
  llvm::StringLiteral rule;
  /// As in Row.
  int64_t slack, tail;
  bool isForShort;
  /// A call is short by up to so many rows and keys, or by `either` of the two.
  int64_t mostRows, mostKeys;
  bool either;
  /// As in Row.
  bool recompute = false, hold = false;
  int64_t keep = 0;
};
} // namespace

/// Where a block has few tiles, how it starts and ends counts, and a block that stays hides both;
/// under a mask 128 rows waste less than 192. Measured beside what the other table has
/// (bench/results/gpu-short.json). A window has such tiles at all lengths. 128 rows would leave a
/// third of a tile of 192 empty, whatever their keys. At D = 97 to 192 blocks that hold are as
/// fast at all lengths, and one kernel is assembled where there were two; at D = 64 they are faster
/// up to 1024 keys, of whose rows tiles of 192 leave up to an eighth empty. Rows with more regions,
/// factors or gathers are not: they spill where blocks stay, or were not measured. A stage is held
/// beside masks at D = 64 as well (1.01 and 1.02 at 512 and 1024). At D = 256
/// blocks that stay without a mask spill unless they recompute.
static constexpr unsigned kOneWay = BiasUnderMask | Gathers | Long | Split | Factors | Window;
static constexpr int64_t kAnyLength = LengthChoice::kAny;
static constexpr LengthRow kHopperLengthRows[] = {
    {0, 48, Masked, kOneWay, 128, 128, 4, "cuda-d48-short", -1, 0, true, 2048, 2048, false},
    {0, 64, Masked, kOneWay, 128, 128, 4, "cuda-d64-short", -1, 0, true, 1024, 1024, false, false,
     true},
    {0, 48, Plain, Long | Split, 192, 128, 0, "cuda-d48-short", -1, 0, true, kAnyLength, 2048,
     false},
    {0, 64, Plain, Long | Split, 128, 128, 0, "cuda-d64-short", -1, 0, true, kAnyLength, 1024,
     false, true, true},
    {0, 96, Plain, Long | Split, 128, 128, 0, "cuda-d96-short", 0, 0, true, 128, 2048, true, true},
    {0, 128, Plain, Long | Split, 128, 128, 0, "cuda-d128-full", 0, 0, true, kAnyLength, kAnyLength,
     false, true, true},
    {129, 192, Plain, Long | Split | WideValues, 128, 128, 0, "cuda-d192-narrow-full", 0, 0, true,
     kAnyLength, kAnyLength, false, false, true, 64},
    {129, 192, Plain, Long | Split, 128, 96, 0, "cuda-d192-full", 0, 0, true, kAnyLength,
     kAnyLength, false, true, true, 48},
    {193, 256, Plain, Long | Split, 128, 64, 0, "cuda-d256-short", 0, 0, true, kAnyLength, 768,
     false, true}};

namespace {
/// As Row, for calls with few rows or few keys, without regions.
struct FewRow {
  int64_t columns;
  unsigned any, none;
  int64_t blockM, blockN;
  llvm::StringLiteral rule;
  bool stay;
  int64_t slack;
  bool recompute = false, hold = false;
};
} // namespace

/// 128 rows are one tile of 128, of which tiles of 192 would leave a third empty, and memory counts
/// beside products. Measured with 16384 keys (bench/NOTES.md). They are no rows of the other
/// tables, since each kernel more is one that every first call would assemble.
static constexpr FewRow kHopperFewRows[] = {
    {64, Plain, Long | Split, 128, 128, "cuda-d64-few", false, -1, false, true},
    {128, Plain, Long | Split, 128, 128, "cuda-d128-few", false, 0, false, true}};

/// Up to 80 keys, those of a caption, are one tile of 80, of which wider ones would multiply what
/// does not exist, and so many blocks with so little to do each are told by how they begin and end.
/// Up to 160 are two of them. Measured with 77 and 154 keys (bench/NOTES.md).
static constexpr FewRow kHopperNarrowRows[] = {
    {64, Plain, Long | Split, 192, 80, "cuda-d64-narrow", true, -1},
    {128, Plain, Long | Split, 192, 80, "cuda-d128-narrow", true, 0},
    {256, Plain, Long | Split, 128, 80, "cuda-d256-narrow", true, 0, true}};

/// The first row of a table that holds, or its end.
template <typename Table>
static const auto *findRow(const Table &table, const GPUProblem &problem, unsigned traits) {
  int64_t columns = std::max(problem.headDim, problem.valueDim);
  return llvm::find_if(table, [&](const auto &row) {
    return columns <= row.columns && (!row.any || (traits & row.any)) && !(traits & row.none);
  });
}

/// Tiles are listed where the list is the only way to know them. Parts of split keys are short, and
/// each would need a list of its own.
static bool doListsPay(const GPUProblem &problem) {
  return problem.hidesFullTiles && problem.splits == 1;
}

BlockSizes attn::chooseForCUDA(const Machine &machine, const GPUProblem &problem) {
  unsigned traits = getTraits(problem);
  // Wider heads than any are refused; the last row is as good as any other.
  const Row *row = std::min(findRow(kHopperRows, problem, traits), std::end(kHopperRows) - 1);
  // What regions do beyond `mostWork` takes keys, as 900 random attentions tell (one spills, 4
  // bytes). One step of keys is the least there is.
  int64_t excess = std::clamp<int64_t>(problem.work.weight - row->mostWork, 0, 12);
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  int64_t narrowed = llvm::alignDown(row->blockN - 16 * llvm::divideCeil(excess, 6), step);
  bool stays = doBlocksStay(*row, traits, problem.work);
  return {row->blockM,
          std::max(narrowed, step),
          kHopperStages,
          row->rule,
          stays,
          !stays && doListsPay(problem),
          row->slack,
          stays ? row->tail : 0,
          stays && row->recompute,
          row->hold && !problem.hasScore && !(traits & (Long | Split)),
          row->apart && problem.isMasked,
          problem.headDim > row->keep ? row->keep : 0};
}

std::optional<LengthChoice> attn::chooseForLength(const GPUProblem &problem) {
  const LengthRow *row = findRow(kHopperLengthRows, problem, getTraits(problem));
  if (row == std::end(kHopperLengthRows) || problem.work.weight > row->mostWork ||
      std::max(problem.headDim, problem.valueDim) < row->leastColumns)
    return std::nullopt;
  BlockSizes sizes{row->blockM,   row->blockN,     kHopperStages,
                   row->rule,
                   /*stay=*/true, /*lists=*/false, row->slack,
                   row->tail,     row->recompute,  row->hold && !problem.hasScore};
  sizes.keep = problem.headDim > row->keep ? row->keep : 0;
  return LengthChoice{sizes, row->isForShort, row->mostRows, row->mostKeys, row->either};
}

/// Of a table of calls with few rows or few keys.
static std::optional<BlockSizes> chooseForFew(llvm::ArrayRef<FewRow> rows, const Machine &machine,
                                              const GPUProblem &problem) {
  const FewRow *row = findRow(rows, problem, getTraits(problem));
  if (row == rows.end())
    return std::nullopt;
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim);
  return BlockSizes{row->blockM,
                    int64_t(llvm::alignTo(row->blockN, step)),
                    kHopperStages,
                    row->rule,
                    row->stay,
                    /*lists=*/false,
                    row->slack,
                    /*tail=*/0,
                    row->recompute,
                    row->hold && !problem.hasScore};
}

std::optional<BlockSizes> attn::chooseForFewRows(const Machine &machine,
                                                 const GPUProblem &problem) {
  return chooseForFew(kHopperFewRows, machine, problem);
}

std::optional<BlockSizes> attn::chooseForFewKeys(const Machine &machine,
                                                 const GPUProblem &problem) {
  return chooseForFew(kHopperNarrowRows, machine, problem);
}

/// Two blocks leave neither without work where the other begins or ends, which is 1 to 2 % of a
/// call with 8192 keys a head; their threads have 216 registers for 240, and wide heads no room for
/// two rings.
static int64_t countDecodingBlocks(const GPUProblem &problem, bool isGiven) {
  bool isWide = std::max(problem.headDim, problem.valueDim) > 128;
  return isGiven || isWide || problem.hasFactors || problem.work.isLong ? 1 : 2;
}

/// Few keys where functions, factors or much work live beside them: ptxas spills otherwise. Of two
/// blocks as many as make the fewest and the largest tiles of a ring.
static int64_t getDecodingKeys(const GPUProblem &problem, int64_t resident) {
  constexpr int64_t mostWork = 9;
  int64_t columns = std::max(problem.headDim, problem.valueDim);
  bool isWide = columns > 128;
  if (resident > 1)
    return columns <= 64 ? 96 : 80;
  if (problem.hasFactors || (isWide && (problem.work.isLong || problem.work.weight > mostWork)))
    return 32;
  if (problem.work.isLong)
    return 48;
  return columns <= 64 ? 128 : 64;
}

BlockSizes attn::chooseForDecoding(const Machine &machine, const GPUProblem &problem,
                                   int64_t elementBytes, int64_t blockN, bool isGiven) {
  // Eight stages are more than memory needs in flight.
  constexpr int64_t kMostStages = 8;
  int64_t step = getKeyStep(machine, problem.headDim, problem.valueDim, elementBytes);
  int64_t resident = countDecodingBlocks(problem, isGiven);
  if (!blockN)
    blockN = std::max<int64_t>(step, llvm::alignDown(getDecodingKeys(problem, resident), step));
  GPUBlock block{
      problem.headDim, problem.valueDim, elementBytes, machine.productRows, blockN, kMostStages, 1};
  while (block.stages > 1 && getSharedBytes(machine, block) > machine.getBlockBytes(resident))
    --block.stages;
  BlockSizes sizes{block.blockM, block.blockN, block.stages, "cuda-decode"};
  sizes.resident = resident;
  return sizes;
}
