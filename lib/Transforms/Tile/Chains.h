//===- Chains.h - steps that hand late ops on ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_CHAINS_H
#define ATTN_LIB_TRANSFORMS_TILE_CHAINS_H

#include "lib/Transforms/Tile/Delays.h"

namespace attn::tile {

/// The chain that begins with a loop, or with the step in front of it. A chain is steps in the
/// order in which they run. Their late ops differ in nothing but the values from outside, and each
/// step does first the ops that the step before leaves. A step on its own may be the first; all
/// others are loops.
mlir::FailureOr<llvm::SmallVector<LateOps>> findChain(mlir::scf::ForOp loop, Misfit &misfit);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_CHAINS_H
