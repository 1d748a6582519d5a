//===- ScheduleRule.h - block sizes for a problem ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_SCHEDULERULE_H
#define ATTN_LIB_TRANSFORMS_ATTN_SCHEDULERULE_H

#include "lib/Analysis/MaskTiles/Cells.h"
#include "lib/Machine/Machine.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Attn/RegionWork.h"
#include "llvm/ADT/SmallVector.h"
#include <limits>
#include <optional>

namespace attn {

/// The schedule that a rule chooses, and the name of the row that decided.
struct Choice {
  Schedule schedule;
  llvm::StringRef rule;
};

/// The names of all rows of the machine's tables.
llvm::SmallVector<llvm::StringRef> getRowNames(const Machine &machine);

/// What the rule for a GPU asks of an attention.
struct GPUProblem {
  int64_t headDim, valueDim;
  bool isMasked = false, scoreReadsTensors = false;
  RegionWork work = {};
  int64_t splits = 1;
  /// Whether only the mask's elements tell which tiles it keeps whole (hidesFullTiles).
  bool hidesFullTiles = false;
  bool hasFactors = false;
  bool hasScore = false;
  /// Keys of a page; 0 where keys lie one after the other.
  int64_t pageSize = 0;
  /// Whether queries or keys are rows of sequences.
  bool isRagged = false;
  /// The cell in which what the mask reads is the same, if reads of cells decide about its tiles;
  /// and the work of what is left of the mask in tiles of a cell.
  std::optional<Cell> cell = {}; // NOLINT(readability-redundant-member-init)
  RegionWork workInCell = {};
  /// How products take an element.
  Factors factors = {};
  /// Keys of a part; 0: parts are `splits`.
  int64_t fixedSplit = 0;
};

/// What the rule for a GPU asks of this attention, whose keys are split into so many parts.
GPUProblem getGPUProblem(AttentionOp attention, int64_t splits);

/// Keys of a step for parts of so many: a multiple of `step` that divides them, `most` if it can
/// be; `step` if none does.
int64_t fitToParts(int64_t fixedSplit, int64_t step, int64_t most);

/// The same for all kernels of a GPU, so that rows are summed alike whatever the number of rows.
int64_t chooseKeysOfParts(const Machine &machine, const GPUProblem &problem);

/// Sizes for a CPU with registers of `lanes` f32, and products of bf16 pairs if `bf16Pairs`.
Choice chooseForCPU(int64_t lanes, bool bf16Pairs);
/// And for gradients, whose products are f32's.
Choice chooseGradForCPU(int64_t lanes);

/// Sizes for a GPU where the rows of a key head's query heads fill no more than one tile: keys and
/// values pass through a deep ring once, of one block on a multiprocessor or, where no size is
/// given and registers do, of two. `blockN` of 0 is chosen too.
Choice chooseForDecoding(const Machine &machine, const GPUProblem &problem, int64_t blockN,
                         bool isGiven);

/// Sizes for a GPU; block_n is a positive multiple of getKeyStep.
Choice chooseForCUDA(const Machine &machine, const GPUProblem &problem);

/// Other sizes than those of chooseForCUDA for short sequences. A call is short by up to so many
/// rows and keys.
struct LengthChoice {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  Choice choice;
  int64_t mostRows = kAny, mostKeys = kAny;
  /// Whether one of the two is enough.
  bool either = false;
};

/// Nothing where chooseForCUDA is as good for all lengths.
std::optional<LengthChoice> chooseForLength(const Machine &machine, const GPUProblem &problem);

/// Sizes for calls with few rows, at most 128, and many keys. Nothing where they are those of other
/// calls with many keys.
std::optional<Choice> chooseForFewRows(const Machine &machine, const GPUProblem &problem);

/// Sizes for calls with few keys, at most 80 or from 129 to 160, and many rows. Nothing where they
/// are those of other calls.
std::optional<Choice> chooseForFewKeys(const Machine &machine, const GPUProblem &problem);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SCHEDULERULE_H
