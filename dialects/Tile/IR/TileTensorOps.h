//===- TileTensorOps.h - operations on tensor memory ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_TILE_IR_TILETENSOROPS_H
#define ATTN_DIALECTS_TILE_IR_TILETENSOROPS_H

#include "dialects/Tile/IR/TileOps.h"

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileTensorOps.h.inc"

namespace attn::tile {

/// Of shared memory, for where claimed columns begin.
inline constexpr int64_t kColumnsBytes = 4;

/// The units that have the rows of a place, on the machine of `op`.
int64_t getUnits(mlir::Operation *op, TensorPlaceType type);

} // namespace attn::tile

#endif // ATTN_DIALECTS_TILE_IR_TILETENSOROPS_H
