//===- CostModel.h - how long things take on Hopper -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Useful, not exact: every instruction takes some cycles of a few resources that the warpgroups of
// a block share. Elementwise ops between two reductions overlap, as their registers are
// independent; a reduction needs all that came before.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_COSTMODEL_H
#define ATTN_LIB_SIMULATOR_COSTMODEL_H

#include "mlir/IR/Operation.h"
#include <array>
#include <cstdint>

namespace attn::sim {

/// What a warpgroup's part of an instruction needs, in cycles of the whole multiprocessor.
struct Work {
  double issue = 0, exp = 0;
  /// Needs all elements of what came before.
  bool isReduction = false;
};

enum class Resource { Tensor, Exp, Issue, Shared, Memory };
inline constexpr unsigned kNumResources = 5;
const char *getName(Resource resource);

/// One H100 or H200 multiprocessor; numbers per cycle unless said otherwise.
struct Machine {
  /// The nominal clock, and what the power limit leaves of it: plain matrix products reach 680 of
  /// the 989 TFLOP/s that the nominal clock allows.
  double clockGHz = 1.83, loadedClockGHz = 1.4;
  int64_t multiprocessors = 132;
  /// Dense 16-bit floating-point operations; twice that for 8 bits.
  double tensorFlops = 4096;
  double exps = 16;
  /// Instructions of one lane.
  double lanes = 128;
  double sharedBytes = 128;
  /// From L2, all multiprocessors busy.
  double memoryBytes = 40;
  /// From HBM: what a block reads first.
  double copyLatency = 400, copyBytes = 126;
  double productLatency = 130, waitLatency = 40, arriveLatency = 20, exchangeLatency = 130;
  double launchCycles = 5000, blockCycles = 900;

  double getPeakTflops(unsigned elementBits) const {
    return tensorFlops * (elementBits == 8 ? 2 : 1) * clockGHz * double(multiprocessors) / 1000;
  }
};

/// The work of an op on register tiles: `elements` per warpgroup.
Work getWork(mlir::Operation *op, int64_t elements);

/// Cycles of a product of one warpgroup: the tensor core's, or those of its reads of shared memory.
struct ProductCost {
  double tensor = 0, shared = 0;
};
ProductCost getProductCost(const Machine &machine, int64_t m, int64_t n, int64_t k,
                           unsigned elementBits, bool isLhsShared);

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_COSTMODEL_H
