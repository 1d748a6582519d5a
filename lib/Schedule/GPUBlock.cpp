//===- GPUBlock.cpp - what a block of attention takes of a GPU --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Schedule/GPUBlock.h"
#include "lib/Machine/Swizzle.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace attn;
using llvm::formatv;

//===----------------------------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------------------------===//

int64_t attn::getTileBytes(const Machine &machine, int64_t rows, int64_t rowBytes, bool isSummed) {
  if (isSummed)
    rowBytes = llvm::alignTo(rowBytes, machine.product.sumBytes);
  int64_t swizzle = getSwizzleWithin(rowBytes);
  return rows * swizzle * llvm::divideCeil(rowBytes, swizzle);
}

/// Elements of one byte, whose values are transposed in shared memory.
static bool isNarrow(int64_t elementBytes) { return elementBytes == 1; }

/// Bytes of one stage of values with rows as columns; 0 where products read them as they are.
static int64_t getTransposedBytes(const Machine &machine, const GPUBlock &block) {
  return isNarrow(block.elementBytes)
             ? getTileBytes(machine, block.valueDim, block.schedule.blockN, false)
             : 0;
}

/// Bytes of one stage of keys and of one of values.
static std::pair<int64_t, int64_t> getStageBytes(const Machine &machine, const GPUBlock &block) {
  return {getTileBytes(machine, block.schedule.blockN, block.headDim * block.elementBytes, true),
          getTileBytes(machine, block.schedule.blockN, block.valueDim * block.elementBytes, false)};
}

int64_t attn::getKeyStep(const Machine &machine, int64_t headDim, int64_t valueDim,
                         int64_t elementBytes) {
  GPUBlock block{headDim, valueDim, elementBytes, {}};
  int64_t &step = block.schedule.blockN;
  for (step = machine.product.sumBytes / elementBytes;; step *= 2) {
    auto [key, value] = getStageBytes(machine, block);
    if (key % machine.stageBytes == 0 && value % machine.stageBytes == 0 &&
        getTransposedBytes(machine, block) % machine.stageBytes == 0)
      return step;
  }
}

int64_t attn::getSharedBytes(const Machine &machine, const GPUBlock &block) {
  auto [key, value] = getStageBytes(machine, block);
  value += getTransposedBytes(machine, block);
  int64_t query = getTileBytes(machine, block.schedule.blockM, block.headDim * block.elementBytes,
                               /*isSummed=*/true);
  // The query has one barrier of 8 bytes, or is a ring of one stage; each stage of a ring has two.
  int64_t rings = isNarrow(block.elementBytes) ? 3 : 2;
  int64_t barriers = 8 * (1 + block.schedule.stay + 2 * (rings * block.schedule.stages));
  return block.parts * (query + block.schedule.stages * (key + value) + barriers);
}

//===----------------------------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------------------------===//

std::string attn::refuseSize(const Machine &machine, llvm::StringRef what, int64_t size,
                             int64_t step, int64_t most, llvm::StringRef condition) {
  if (size > 0 && size % step == 0 && size <= most)
    return {};
  int64_t nearest =
      std::clamp<int64_t>(llvm::alignTo(std::max<int64_t>(size, 1), step), step, most);
  return formatv("expected {0} in multiples of {1} up to {2}{3} on {4}, got {5}; the nearest is "
                 "{6}",
                 what, step, most, condition, machine.name, size, nearest);
}

/// Whether the sum of weighted values is in tensor memory, beside scores and weights.
static bool hasTensorMemory(const Machine &machine) {
  return machine.product.form == Product::Form::Tensor;
}

/// Whether the accumulator of one product fits the registers of a consumer's thread.
static bool fitsRegisters(const Machine &machine, const GPUBlock &block) {
  int64_t columns = std::max(block.schedule.blockN, block.valueDim);
  // Values of parts are added to their sum in registers.
  if (hasTensorMemory(machine))
    columns = std::max(block.schedule.blockN,
                       addsTiles(machine, block.parts, block.valueDim) ? 2 * block.valueDim : 0);
  int64_t steps = std::max<int64_t>(1, block.schedule.blockM /
                                           (block.schedule.consumers * machine.getWarpgroupRows()));
  int64_t accumulator = machine.getTileRegisters(columns) * steps;
  return accumulator + machine.product.registers <=
         machine.getBudget(block.schedule.consumers, block.schedule.stay, block.schedule.resident)
             .consumer;
}

static std::string refuseRegisters(const Machine &machine, const GPUBlock &block) {
  if (fitsRegisters(machine, block))
    return {};
  GPUBlock nearest = block;
  while (nearest.schedule.resident > 1 && !fitsRegisters(machine, nearest))
    --nearest.schedule.resident;
  while (nearest.schedule.consumers > 1 && !fitsRegisters(machine, nearest))
    --nearest.schedule.consumers;
  bool keepsRows = nearest.schedule.consumers == block.schedule.consumers &&
                   nearest.schedule.resident < block.schedule.resident;
  int64_t size = keepsRows ? nearest.schedule.resident
                           : nearest.schedule.consumers * machine.getWarpgroupRows();
  return formatv(
      "expected products that fit the {0} registers of a thread in a block of {1} rows "
      "on {2}, got {3} columns; the nearest is {4} {5}",
      machine.getBudget(block.schedule.consumers, block.schedule.stay, block.schedule.resident)
          .consumer,
      block.schedule.blockM, machine.name, std::max(block.schedule.blockN, block.valueDim),
      keepsRows ? "resident" : "block_m", size);
}

/// The largest value of one size, below the block's, with which the block fits; 0 if none does.
static int64_t findFitting(const Machine &machine, GPUBlock block, int64_t Schedule::*size,
                           int64_t step) {
  int64_t &left = block.schedule.*size;
  for (left -= step; left > 0; left -= step)
    if (getSharedBytes(machine, block) <= machine.getBlockBytes(block.schedule.resident))
      return left;
  return 0;
}

static std::string refuseShared(const Machine &machine, const GPUBlock &block) {
  int64_t bytes = getSharedBytes(machine, block);
  if (bytes <= machine.getBlockBytes(block.schedule.resident))
    return {};
  int64_t step = getKeyStep(machine, block.headDim, block.valueDim, block.elementBytes);
  int64_t n = findFitting(machine, block, &Schedule::blockN, step),
          stages = findFitting(machine, block, &Schedule::stages, 1);
  GPUBlock least = block;
  least.schedule.blockM = machine.getWarpgroupRows();
  least.schedule.blockN = step;
  least.schedule.stages = least.schedule.resident = 1;
  std::string end = "no block fits these head dimensions";
  if (n)
    end = formatv("the nearest is block_n {0}", n);
  if (stages)
    end = (n ? end + ", or " : "the nearest is ") + formatv("stages {0}", stages).str();
  if (!n && !stages && getSharedBytes(machine, least) <= machine.getBlockBytes(1))
    end = formatv("the nearest is block_m {0}, block_n {1} and stages 1", least.schedule.blockM,
                  step);
  return formatv("expected at most {0} bytes of shared memory in a block on {1}, got {2} for "
                 "block_m {3}, block_n {4} and stages {5}; {6}",
                 machine.getBlockBytes(block.schedule.resident), machine.name, bytes,
                 block.schedule.blockM, block.schedule.blockN, block.schedule.stages, end);
}

static std::string refuseColumns(const Machine &machine, const GPUBlock &block) {
  int64_t most = hasTensorMemory(machine) ? machine.getColumns(block.schedule.consumers) : 0;
  // A product writes whole steps of columns.
  int64_t sums = llvm::alignTo(block.valueDim, 16);
  if (!most || sums + block.schedule.blockN <= most)
    return {};
  int64_t step = getKeyStep(machine, block.headDim, block.valueDim, block.elementBytes);
  int64_t keys = llvm::alignDown(std::max<int64_t>(most - sums, 0), step);
  std::string nearest = keys ? formatv("block_n {0}", keys).str()
                             : formatv("block_m {0}", machine.getWarpgroupRows()).str();
  return formatv("expected keys and columns of values within the {0} columns of tensor memory that "
                 "each of {1} consumers has on {2}, got {3} and {4}; the nearest is {5}",
                 most, block.schedule.consumers, machine.name, block.schedule.blockN,
                 block.valueDim, nearest);
}

static std::string refuseConsumers(const Machine &machine, const GPUBlock &block) {
  int64_t consumers = block.schedule.blockM / machine.getWarpgroupRows(),
          given = block.schedule.consumers;
  bool fits = given > 0 && consumers % given == 0 && consumers / given <= machine.product.steps;
  if (fits)
    return {};
  return formatv("expected a consumer for each {0} of block_m {1} on {2}, got {3}; the nearest is "
                 "{4}",
                 machine.getWarpgroupRows(), block.schedule.blockM, machine.name,
                 block.schedule.consumers, consumers);
}

std::string attn::refuseBlock(const Machine &machine, const GPUBlock &block) {
  if (isNarrow(block.elementBytes) && !machine.product.multipliesNarrow)
    return formatv("expected elements of 16 bits or more on {0}, got 8 bits", machine.name);
  // Rows of memory begin at multiples of 16 bytes.
  int64_t columnStep = std::max(machine.product.columnStep, kChunkBytes / block.elementBytes);
  for (int64_t columns : {block.headDim, block.valueDim})
    if (std::string why =
            refuseSize(machine, "head dimensions", columns, columnStep, machine.product.columns);
        !why.empty())
      return why;
  // A consumer for each product's rows; one copy brings all of them.
  int64_t mostRows =
      std::min(machine.getMostConsumers() * machine.getWarpgroupRows(), machine.copy.rows);
  if (std::string why = refuseSize(machine, "block_m", block.schedule.blockM,
                                   machine.getWarpgroupRows(), mostRows);
      !why.empty())
    return why;
  if (std::string why = refuseConsumers(machine, block); !why.empty())
    return why;
  int64_t step = getKeyStep(machine, block.headDim, block.valueDim, block.elementBytes);
  if (std::string why = refuseSize(machine, "block_n", block.schedule.blockN, step,
                                   machine.product.columns, " with these head dimensions");
      !why.empty())
    return why;
  if (std::string why = refuseSize(machine, "stages", block.schedule.stages, 1, machine.stages);
      !why.empty())
    return why;
  if (std::string why = refuseRegisters(machine, block); !why.empty())
    return why;
  if (std::string why = refuseColumns(machine, block); !why.empty())
    return why;
  return refuseShared(machine, block);
}
