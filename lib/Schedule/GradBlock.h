//===- GradBlock.h - what a block of gradients takes of a GPU ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// GPUBlock.h is the same for attention itself.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_GRADBLOCK_H
#define ATTN_LIB_SCHEDULE_GRADBLOCK_H

#include "lib/Machine/Machine.h"
#include "lib/Schedule/Schedule.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace attn {

/// The sizes of a block of one pass: D and Dv, the bytes of an element, what it owns and what runs.
struct GradBlock {
  int64_t headDim, valueDim, elementBytes;
  /// Keys are owned and rows run, or the other way round.
  bool rowsRun;
  int64_t owned, running, stages;
  /// Where rows run, whose gradients are summed.
  bool sumsKeys = true, sumsValues = true;
  /// Where rows run, whether the block also adds to the gradients of queries.
  bool addsQueries = false;
  /// Where rows run, whether each of both sums is the business of a role of its own: one has the
  /// rows of the other, and all keys of the block.
  bool dividesSums = false;
  /// The factors of an element, each of `elementBytes` (GPUBlock.h).
  int64_t parts = 1;
};

/// The schedule that the block follows.
Schedule getSchedule(const Machine &machine, const GradBlock &block);

/// The block with the numbers of a schedule.
GradBlock withSchedule(const Machine &machine, GradBlock block, const Schedule &schedule);

/// Whether two sums of a block that owns so many keys are the business of two roles, each with all
/// of them: the schedule has twice the consumers that they need.
bool dividesSums(const Machine &machine, const Schedule &schedule, int64_t owned);

/// Why the machine has no such block, with the nearest that it has: "expected X, got Y; the nearest
/// is Z". Empty if it has.
std::string refuseGradBlock(const Machine &machine, const GradBlock &block);

/// The work of a thread on a problem besides sums and products.
struct GradWork {
  /// Values that regions keep for every score.
  int64_t heldTiles = 0;
  /// Whether a function of scores is computed, perhaps of what it reads for each of them.
  bool hasScore = false, gathersScore = false;
  /// Its reads of sorted tables, as those of positions, and whether it adds an origin to a
  /// position.
  int64_t tablesOfScore = 0;
  bool shiftsScore = false;
  /// Whether the log-sum-exp of a row is two numbers, in a pass in which rows run.
  bool readsLow = false;
  /// Whether the gradients of scores are computed from the scores, perhaps by functions that a GPU
  /// has no instructions for.
  bool derivesScores = false, isLong = false;
  /// Numbers of each score that its gradient is computed from.
  int64_t keptScores = 0;
  /// Whether weights have factors, which both products of a pass over keys take.
  bool hasFactor = false;
  bool isMasked = false;
  /// Whether rows are those of sequences: threads clear what products would read of the next one.
  bool isRagged = false;
  /// Whether tiles are those of a list.
  bool isListed = false;
  /// Whether a mask reads tensors, at places that differ within a tile, in which numbers ascend, or
  /// at places that another tensor tells.
  bool readsMask = false, gathersMask = false, searchesMask = false, chainsMask = false;
  /// Operations of a mask beyond the first comparison, and operations of other regions besides the
  /// mask.
  int64_t maskWeight = 0;
  /// Operations of the mask alone.
  int64_t maskOperations = 0;
  /// Conditions of a mask on rows alone.
  int64_t rowConditions = 0;
  /// Ranges that a mask may keep besides one: by each choice of either, and by two for all but one
  /// row or key.
  int64_t otherRanges = 0;
  /// Whether a mask divides by what is no constant, which takes many registers for a while.
  bool divides = false;
};

/// Whether the rule asks the lowered program, or has a formula.
bool isCounted(const Machine &machine, const GradBlock &block, const GradWork &work);

/// Registers of a thread that the tiles of a block leave of its budget.
using CountSpare = llvm::function_ref<int64_t(const GradBlock &)>;

/// The block with `owned`, `running` and `stages` of the rule. Where none fits, the least that
/// there is.
GradBlock chooseGradBlock(const Machine &machine, GradBlock block, const GradWork &work,
                          CountSpare countSpare);

/// Whether shared memory has room for a block, and its tiles leave a thread what it takes besides.
bool fitsGradBlock(const Machine &machine, const GradBlock &block, const GradWork &work,
                   CountSpare countSpare);

/// The block of the rule that also adds to the gradients of queries, if the machine has one: the
/// product for them has the rows of all consumers, either its rows or the head dimension.
std::optional<GradBlock> chooseFusedBlock(const Machine &machine, GradBlock block,
                                          const GradWork &work);

/// The block of the rule whose sums for keys and for values are of two roles, if the machine has
/// one: both have the weights, and nothing else of each other.
std::optional<GradBlock> chooseDividedBlock(const Machine &machine, GradBlock block, GradWork work,
                                            CountSpare countSpare);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_GRADBLOCK_H
