//===- ScheduleRule.h - block sizes for a problem ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_SCHEDULERULE_H
#define ATTN_LIB_TRANSFORMS_ATTN_SCHEDULERULE_H

#include "lib/Machine/Machine.h"
#include "lib/Transforms/Attn/RegionWork.h"
#include <limits>
#include <optional>

namespace attn {

/// A rule's choice and the name it goes by in the remark.
struct BlockSizes {
  int64_t blockM, blockN, stages;
  llvm::StringRef rule;
  /// Whether blocks take one tile of rows after the other, on a GPU.
  bool stay = false;
  /// Whether the tiles that the mask keeps are listed before, on a GPU.
  bool lists = false;
  /// By which factor 2^slack maxima of rows may lag, on a GPU; -1: every step scales.
  int64_t slack = -1;
  /// Of blocks that stay, how many more for each multiprocessor come behind them.
  int64_t tail = 0;
  /// Whether blocks that stay recompute what their inner loops do not read (decision 0042).
  bool recompute = false;
  /// Whether blocks hold a stage of keys until the first weights of its step are there (decision
  /// 0045).
  bool hold = false;
  /// Whether consumers begin apart where a mask cuts their tiles (decision 0047).
  bool apart = false;
  /// On a GPU, columns of the query that consumers keep in registers (decision 0048).
  int64_t keep = 0;
  /// On a GPU, warpgroups beside the producer's; 0: as many as own 64 rows each.
  int64_t consumers = 0;
  /// On a GPU, blocks that a multiprocessor has at a time.
  int64_t resident = 1;
};

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
};

/// What the rule for a GPU asks of this attention, whose keys are split into so many parts.
GPUProblem getGPUProblem(AttentionOp attention, int64_t splits);

/// Sizes for a CPU with registers of `lanes` f32, and products of bf16 pairs if `bf16Pairs`.
BlockSizes chooseForCPU(int64_t lanes, bool bf16Pairs);
/// And for gradients, whose products are f32's.
BlockSizes chooseGradForCPU(int64_t lanes);

/// Sizes for a GPU where the rows of a key head's query heads fill no more than one tile: keys and
/// values pass through a deep ring once, of one block on a multiprocessor or, where no size is
/// given and registers do, of two. `blockN` of 0 is chosen too.
BlockSizes chooseForDecoding(const Machine &machine, const GPUProblem &problem,
                             int64_t elementBytes, int64_t blockN, bool isGiven);

/// Sizes for a GPU; block_n is a positive multiple of getKeyStep.
BlockSizes chooseForCUDA(const Machine &machine, const GPUProblem &problem);

/// Other sizes than those of chooseForCUDA for short sequences, or for long ones. A call is short
/// by up to so many rows and keys.
struct LengthChoice {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  BlockSizes sizes;
  bool isForShort = true;
  int64_t mostRows = kAny, mostKeys = kAny;
  /// Whether one of the two is enough.
  bool either = false;
};

/// Nothing where chooseForCUDA is as good for all lengths.
std::optional<LengthChoice> chooseForLength(const GPUProblem &problem);

/// Sizes for calls with few rows, at most 128, and many keys. Nothing where they are those of other
/// calls with many keys.
std::optional<BlockSizes> chooseForFewRows(const Machine &machine, const GPUProblem &problem);

/// Sizes for calls with few keys, at most 80 or from 129 to 160, and many rows. Nothing where they
/// are those of other calls.
std::optional<BlockSizes> chooseForFewKeys(const Machine &machine, const GPUProblem &problem);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SCHEDULERULE_H
