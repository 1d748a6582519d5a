//===- CostModel.h - how long things take -----------------------------------------------------===//
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

#include "lib/Machine/Machine.h"
#include "mlir/IR/Operation.h"
#include <array>
#include <cstdint>

namespace attn::sim {

/// The cost of a warpgroup's part of an instruction, in cycles of the whole multiprocessor.
struct Work {
  double issue = 0, exp = 0;
  /// Needs all elements of the value before.
  bool isReduction = false;
};

/// Memory is L2's, which a block uses. HBM is what all blocks of a grid use together.
enum class Resource { Tensor, Exp, Issue, Shared, Memory, HBM };
inline constexpr unsigned kNumResources = 6;
const char *getName(Resource resource);

/// The work of an op on register tiles: `elements` per warpgroup.
Work getWork(const Costs &costs, mlir::Operation *op, int64_t elements);

/// Bytes of HBM for each multiprocessor in a cycle of the nominal clock, where all are busy.
double getHBMBytes(const Chip &chip);

/// Cycles of a product of one warpgroup: of the tensor core, or of its reads of shared memory.
struct ProductCost {
  double tensor = 0, shared = 0;
};
ProductCost getProductCost(const Machine &machine, int64_t m, int64_t n, int64_t k,
                           unsigned elementBits, int64_t sharedColumns);

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_COSTMODEL_H
