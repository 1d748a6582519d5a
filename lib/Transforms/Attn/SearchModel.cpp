//===- SearchModel.cpp - which sizes a search need not time -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/SearchModel.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;
using llvm::formatv;

/// Addresses, coordinates, slots and what else a thread has beside tiles: ptxas spills where less
/// is left of its budget (test/Execution/search_spills.py).
static constexpr int64_t kOtherRegisters = 32;

/// Bounds of a loop for each kind of tile, where a mask makes kinds, beside addresses of wide
/// tiles.
static constexpr int64_t kMaskOfWideTiles = 20, kWideColumns = 192;

/// How much more than the fewest bytes a block may move.
static constexpr double kMargin = 1.25;

/// Of a thread: scores and the accumulator in f32, weights, and what regions keep.
static int64_t countRegisters(const Machine &machine, const GPUProblem &problem,
                              const GPUBlock &block) {
  auto perThread = [&](int64_t columns) { return machine.getTileRegisters(columns); };
  bool isWide = std::max(block.headDim, block.valueDim) >= kWideColumns;
  bool isSplit = block.parts > 1;
  int64_t others = kOtherRegisters;
  if (problem.isMasked && (isWide || isSplit))
    others += kMaskOfWideTiles;
  // Where sequences begin and end, beside addresses of three tiles for one.
  if (problem.isRagged && isSplit)
    others += kOtherRegisters;
  // Functions that a GPU has no instructions for leave no room for parts beside them.
  if (isSplit && problem.work.isLong)
    others += kOtherRegisters + kMaskOfWideTiles;
  // Weights in 16 bits, or their parts, with what is not split yet.
  int64_t weights = (isSplit ? block.parts + 2 : 1) * perThread(block.schedule.blockN) / 2;
  int64_t sums = addsTiles(machine, block.parts, block.valueDim) ? 2 : 1;
  return perThread(block.schedule.blockN) + weights + sums * perThread(block.valueDim) +
         problem.work.weight + others;
}

static int64_t getRegisters(const Machine &machine, const GPUBlock &block) {
  return machine.getBudget(block.schedule.consumers, block.schedule.stay, block.schedule.resident)
      .consumer;
}

bool attn::fitsRegisters(const Machine &machine, const GPUProblem &problem, const GPUBlock &block) {
  return countRegisters(machine, problem, block) <= getRegisters(machine, block);
}

/// Bytes of keys and values that blocks read for each key of a head.
static int64_t countBytes(const GPUBlock &block, int64_t rows) {
  return llvm::divideCeil(rows, block.schedule.blockM) * (block.headDim + block.valueDim) *
         block.elementBytes * block.parts;
}

/// The fewest bytes of blocks with any rows, and with the keys of one step.
static int64_t countFewestBytes(const Machine &machine, const GPUProblem &problem,
                                const GPUBlock &block, int64_t rows) {
  int64_t fewest = countBytes(block, rows);
  GPUBlock other = block;
  Schedule &schedule = other.schedule;
  schedule.blockN = getKeyStep(machine, block.headDim, block.valueDim, block.elementBytes);
  for (schedule.consumers = 1; schedule.consumers <= machine.getMostConsumers();
       ++schedule.consumers) {
    schedule.blockM = schedule.consumers * machine.getWarpgroupRows();
    if (refuseBlock(machine, other).empty() && fitsRegisters(machine, problem, other))
      fewest = std::min(fewest, countBytes(other, rows));
  }
  return fewest;
}

/// Whether keys and values take longer to come than products and exponentials to be computed, which
/// hardly overlap (bench/NOTES.md).
static bool waitsForMemory(const Machine &machine, const GPUBlock &block) {
  const Costs &costs = machine.costs;
  double columns = double(block.headDim + block.valueDim), rows = double(block.schedule.blockM);
  double bytes = columns * double(block.elementBytes * block.parts) / rows / costs.memoryBytes;
  Factors factors{.bytes = block.elementBytes, .parts = block.parts};
  double flops = 2 * columns * double(factors.countProducts());
  return bytes > flops / costs.tensorFlops + 1 / costs.exps;
}

std::string attn::leaveOut(const Machine &machine, const GPUProblem &problem, const GPUBlock &block,
                           int64_t rows) {
  Schedule rule = chooseForCUDA(machine, problem).schedule;
  const Schedule &given = block.schedule;
  if (given.blockM == rule.blockM && given.blockN <= rule.blockN)
    return {};
  int64_t registers = countRegisters(machine, problem, block),
          budget = getRegisters(machine, block);
  if (registers > budget)
    return formatv("left out of the search: block_m {0} and block_n {1} take about {2} registers "
                   "of the {3} of a thread on {4}",
                   given.blockM, given.blockN, registers, budget, machine.name);
  int64_t bytes = countBytes(block, rows), fewest = countFewestBytes(machine, problem, block, rows);
  if (waitsForMemory(machine, block) && double(bytes) > kMargin * double(fewest))
    return formatv("left out of the search: block_m {0} reads {1} bytes for each key, {2:F1} times "
                   "the fewest, and waits for them on {3}",
                   given.blockM, bytes, double(bytes) / double(fewest), machine.name);
  return {};
}
