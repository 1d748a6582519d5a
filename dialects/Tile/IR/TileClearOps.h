//===- TileClearOps.h - operations that keep unread values out of products ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_TILE_IR_TILECLEAROPS_H
#define ATTN_DIALECTS_TILE_IR_TILECLEAROPS_H

#include "dialects/Tile/IR/TileOps.h"

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileClearOps.h.inc"

namespace attn::tile {

/// Words of a row of marks: two for each of the lanes that share a row of the lhs. They have a bit
/// for each of so many columns.
inline constexpr int64_t kMarkWords = 2 * attn::kQuad, kMarkedColumns = 32 * kMarkWords;

/// The place that `tile.mark_read` writes in a role of so many warps: a row for each warp.
SharedType getMarksType(mlir::MLIRContext *context, int64_t warps);

} // namespace attn::tile

#endif // ATTN_DIALECTS_TILE_IR_TILECLEAROPS_H
