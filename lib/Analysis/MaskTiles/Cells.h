//===- Cells.h - conditions of a mask that are the same in all of a tile ----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// A block mask reads a captured tensor at quotients of the positions, keep[h, m / 128, n / 128].
// Its value is one in each cell of 128 x 128, and so in each tile that lies in one cell. MaskTiles
// has no arithmetic for what a tensor holds, but one read of it tells all of a tile.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_CELLS_H
#define ATTN_LIB_ANALYSIS_MASKTILES_CELLS_H

#include "mlir/IR/Region.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace attn {

/// So many rows and keys, counted from the first. A value of a cell is the same for all positions
/// with the same m / rows and n / keys. Zero stands for all rows, or all keys.
struct Cell {
  int64_t rows = 0, keys = 0;

  /// Whether each tile of `tile` lies in one cell, if both begin at multiples of their sizes.
  bool holds(Cell tile) const { return rows % tile.rows == 0 && keys % tile.keys == 0; }
};

/// The conditions of a mask that read tensors by position and are the same in all of a tile whose
/// first row and key are multiples of `tile`. The mask is made of them, and of other conditions, by
/// and, or, xor and select. The order depends on how it is made alone.
llvm::SmallVector<mlir::Value> findTileConditions(mlir::Region &mask, Cell tile);

/// The largest cell in which all conditions are the same that read tensors by quotients of the
/// positions, or nothing if there is no such condition.
std::optional<Cell> findCell(mlir::Region &mask);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_CELLS_H
