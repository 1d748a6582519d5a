//===- ListLoops.h - loops over lists of tiles ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_LISTLOOPS_H
#define ATTN_LIB_TRANSFORMS_ATTN_LISTLOOPS_H

#include "lib/Transforms/Attn/TileConditions.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {

/// A step's loop over tiles, and the grid (B, H, tiles) around it.
struct Listed {
  StepLoop over;
  mlir::scf::ForallOp grid;
  /// In a block of keys, the loop over heads that share them; else null.
  mlir::scf::ForOp heads;
  /// How many rows, or keys, the block owns.
  mlir::OpFoldResult owned;
  /// Whether the list is another one for each batch, head (or turn of `heads`) and tile of what
  /// blocks own.
  std::array<bool, 3> differs = {false, false, true};
  /// The tile's rows and keys, and the masks that it has by reads once a tile.
  Cell tile;
  TileCases cases;
  /// Of which each lies in one cell: the tile, or parts of it, whose steps keep the mask.
  Cell part;
  /// Whether the status of all tiles is computed from that, and voted nowhere.
  bool isComputed = false;

  mlir::Region &getMask() { return over.step.getMask(); }
  bool hasParts() const { return part.rows != tile.rows || part.keys != tile.keys; }
  bool rowsRun() { return over.step.getRunningPosition() == 2; }
  unsigned getFixedPosition() { return rowsRun() ? 3 : 2; }
  /// Only the softmax's steps are delayed past their first, which has to be certain.
  bool isCertain() { return mlir::isa<OnlineAttentionOp>(over.step.getOperation()); }
};

/// For a remark.
std::string describe(Listed &listed);

/// Whether no tile has a mask, so that one loop visits all of a list that has all at its front.
bool visitsInOneLoop(Listed &listed);

mlir::Value emitConstant(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);

/// A slice of one tile's part of a grid's result, from `offset` on.
mlir::tensor::ExtractSliceOp emitSlice(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::Value tensor, llvm::ArrayRef<mlir::OpFoldResult> tile,
                                       mlir::OpFoldResult offset, mlir::OpFoldResult size);

/// A grid in front of the step's that computes the status of each tile and lists them. Its results
/// are the tiles and the counts of each list, by query heads where the step's grid is by key heads.
mlir::scf::ForallOp emitComputedLists(mlir::OpBuilder &builder, Listed &listed);

/// Lets the step's loop visit the tiles of the lists, which it is replaced with.
void emitLoopsOverLists(mlir::RewriterBase &rewriter, Listed &listed, mlir::scf::ForallOp lists);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_LISTLOOPS_H
