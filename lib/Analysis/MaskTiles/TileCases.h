//===- TileCases.h - a mask by what holds in a tile -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// Where conditions of a mask are the same in all of a tile (Cells.h), the mask is another one in
// each tile: the one in which each condition is a constant. Such a mask has no reads of cells any
// more, so that MaskTiles may know all of it. keep[m / 128, n / 128] and n <= m, as an example:
//
//   keep holds       n <= m   causal's ranges say whether the tile is skip, partial or full
//   keep does not    false    every tile is skip: this case is left out
//
// A mask without such conditions has one case, which is the mask.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_TILECASES_H
#define ATTN_LIB_ANALYSIS_MASKTILES_TILECASES_H

#include "lib/Analysis/MaskTiles/Cells.h"
#include "lib/Analysis/MaskTiles/MaskTiles.h"
#include "mlir/IR/OwningOpRef.h"

namespace attn {

class TileCases {
public:
  /// One value for each condition, in the order of findTileConditions.
  struct Case {
    llvm::SmallVector<bool, 3> holds;
    /// Keeps the region, which `tiles` reads.
    mlir::OwningOpRef<mlir::Operation *> holder;
    /// The mask where they hold.
    mlir::Region *mask = nullptr;
    MaskTiles tiles;
  };

  /// Of more conditions than `maxConditions` the others stay in the masks.
  static constexpr size_t maxConditions = 3;
  /// Tiles are `tile`, and begin at multiples of it. The region must outlive the result.
  static TileCases analyze(mlir::Region &mask, Cell tile, FactOf factOf = nullptr,
                           MaskAxis running = MaskAxis::Keys);

  /// The conditions that are read once a tile; values of the mask.
  llvm::ArrayRef<mlir::Value> getConditions() const { return conditions; }
  /// Those in which something is kept.
  llvm::ArrayRef<Case> getCases() const { return cases; }

private:
  llvm::SmallVector<mlir::Value, 3> conditions;
  llvm::SmallVector<Case, 2> cases;
};

/// Erases what a mask computes and nobody uses: conditions that have become constants.
void eraseUnused(mlir::Region &mask);

/// The conditions of a mask that TileCases reads once a tile; of a copy of a mask, the copies.
llvm::SmallVector<mlir::Value> getCaseConditions(mlir::Region &mask, Cell tile);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_TILECASES_H
