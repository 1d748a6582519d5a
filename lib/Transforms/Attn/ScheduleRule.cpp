//===- ScheduleRule.cpp - block sizes for a problem ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;

/// The transposed query (block_m x D) and a tile of probabilities (block_m x block_n) are read once
/// per few rows and should stay in the first-level cache, 32 KiB or more. Pairs of bf16 halve both
/// and make packing the values, once per tile, worth amortising over more rows.
BlockSizes attn::chooseForCPU(int64_t lanes, bool bf16Pairs) {
  if (bf16Pairs)
    return {128, 64, "cpu-bf16-pairs"};
  // Sixteen registers of 8 lanes hold 6 x 2 accumulators; 48 and 96 divide evenly by them.
  if (lanes == 8)
    return {48, 96, "cpu-8-lanes"};
  return {64, 64, "cpu-f32"};
}

/// A warpgroup for each 64 rows. Keys so that the query, two stages of keys and two of values fit
/// 227 KiB, and scores, weights, accumulator and what the regions compute fit the registers: 240 in
/// each thread of two warpgroups, 160 of three. Measured on an H200 (bench/NOTES.md); where a mask
/// cuts tiles, narrow ones waste less. Keys are split where rows are few: three warpgroups would
/// mostly compute rows that do not exist.
BlockSizes attn::chooseForCUDA(const GPUProblem &problem) {
  const RegionWork &work = problem.work;
  int64_t d = std::max(problem.headDim, problem.valueDim);
  int64_t step = getGPUKeyStep(problem.headDim, problem.valueDim);
  // The most that regions may do beside tiles of so many keys without spills, as 900 random
  // attentions tell (one spills, 4 bytes). One step of keys is the least there is.
  auto narrowFor = [&](int64_t keys, int64_t mostWork) -> int64_t {
    int64_t excess = std::clamp<int64_t>(work.weight - mostWork, 0, 12);
    int64_t narrowed = llvm::alignDown(keys - 16 * llvm::divideCeil(excess, 6), step);
    return std::max(narrowed, step);
  };
  if (d <= 64 && !work.gathers && problem.splits == 1)
    return {192,
            narrowFor(work.isLong                                     ? 96
                      : problem.scoreReadsTensors && problem.isMasked ? 112
                                                                      : 128,
                      9),
            "cuda-d64"};
  if (d <= 128)
    return {128, narrowFor(work.isLong ? 112 : 128, 17), "cuda-d128"};
  bool isHeavy = work.isLong || work.gathers;
  if (d <= 192)
    return {128, isHeavy ? narrowFor(64, 21) : narrowFor(96, 9), "cuda-d192"};
  return {128,
          isHeavy            ? narrowFor(48, 21)
          : problem.isMasked ? narrowFor(64, 7)
                             : narrowFor(80, 15),
          "cuda-d256"};
}
