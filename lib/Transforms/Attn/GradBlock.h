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

#ifndef ATTN_LIB_TRANSFORMS_ATTN_GRADBLOCK_H
#define ATTN_LIB_TRANSFORMS_ATTN_GRADBLOCK_H

#include "lib/Machine/Machine.h"
#include <string>

namespace attn {

/// The sizes of a block of one pass: D and Dv, the bytes of an element, what it owns and what runs.
struct GradBlock {
  int64_t headDim, valueDim, elementBytes;
  /// Keys are owned and rows run, or the other way round.
  bool rowsRun;
  int64_t owned, running, stages;
};

/// Why the machine has no such block, with the nearest that it has: "expected X, got Y; the nearest
/// is Z". Empty if it has.
std::string refuseGradBlock(const Machine &machine, const GradBlock &block);

/// The block with `owned`, `running` and `stages` of the rule. Regions that are not linear keep
/// `heldTiles` more values for every score. Where none fits, the least that there is.
GradBlock chooseGradBlock(const Machine &machine, GradBlock block, int64_t heldTiles);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_GRADBLOCK_H
