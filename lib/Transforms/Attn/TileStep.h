//===- TileStep.h - one step of a loop over tiles ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_TILESTEP_H
#define ATTN_LIB_TRANSFORMS_ATTN_TILESTEP_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

/// Emits `op` on [n0, n0 + size) of what runs, all of which `sources` hold; the first is at global
/// position `origin` + n0. Returns the new state. Regions are cloned, the mask only if asked for.
mlir::ValueRange emitTileStep(mlir::OpBuilder &builder, AbsorbingOpInterface op,
                              mlir::ValueRange sources, mlir::OpFoldResult origin, mlir::Value n0,
                              mlir::OpFoldResult size, mlir::ValueRange state, bool withMask);

/// min(tileSize, n - n0): how much the tile at n0 holds.
mlir::OpFoldResult emitTileSize(mlir::OpBuilder &builder, mlir::Location loc, int64_t tileSize,
                                mlir::Value n0, mlir::OpFoldResult n);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_TILESTEP_H
