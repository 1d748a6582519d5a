//===- TileConditions.h - what a mask reads once a tile --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Conditions of a mask that are the same in all of a tile (lib/Analysis/MaskTiles/TileCases.h) are
// computed in front of a step, as scalars, from the tile's first row and key.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_TILECONDITIONS_H
#define ATTN_LIB_TRANSFORMS_ATTN_TILECONDITIONS_H

#include "lib/Analysis/MaskTiles/TileCases.h"
#include "lib/Transforms/Attn/StepLoop.h"

namespace attn {

/// The rows and keys of the loop's tiles, if all begin at multiples of them and the loop with the
/// first position of all; else zeros, for which no mask has conditions.
Cell getTile(StepLoop &over);

/// Parts of a tile that lie in one cell each, where these are few; else zeros. A part of a tile
/// that lies in a cell is the tile.
Cell getPart(Cell tile, Cell cell);

/// The conditions of the mask that are the same in all of a tile, at the first of its elements,
/// (b, h, m, n). Places outside of a tensor are moved inside, as all regions have it: `inRegion`
/// says that this is one.
llvm::SmallVector<mlir::Value, 3> emitConditions(mlir::OpBuilder &builder, mlir::Region &mask,
                                                 Cell tile, mlir::ValueRange at,
                                                 bool inRegion = false);

/// Whether the conditions are those of the case, or null where a mask has none.
mlir::Value emitIsCase(mlir::OpBuilder &builder, mlir::Location loc, const TileCases::Case &each,
                       mlir::ValueRange conditions);

/// Lets the conditions of the mask be these values, which its step sees, or constants.
void setConditions(mlir::Region &mask, Cell tile, mlir::ValueRange values);
void setConditions(mlir::Region &mask, Cell tile, llvm::ArrayRef<bool> holds);

/// The mask from now on: that of its only case, if it has one, and none where that case keeps
/// everything.
void simplifyMask(mlir::Region &mask, Cell tile, const TileCases &cases);

/// A copy of the mask's op without operands and other regions, for analyses.
mlir::OwningOpRef<mlir::Operation *> copyMask(mlir::Region &mask, mlir::IRMapping &mapping);

/// Whether closed forms tell the status of all tiles from what the mask reads once a tile: in
/// none of its cases does what the mask reads by element hide full tiles.
bool areDecided(const TileCases &cases);

/// A copy of the op with the mask that it has in tiles of a cell, of its cases that which does the
/// most. Null where reads of cells do not decide.
mlir::OwningOpRef<mlir::Operation *> copyInCell(ScoredOpInterface op, Cell cell);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_TILECONDITIONS_H
