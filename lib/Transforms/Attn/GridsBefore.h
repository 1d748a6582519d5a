//===- GridsBefore.h - what grids in front of a grid compute for its blocks ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Many blocks of an attention want the same numbers of a tile of rows: those of each head, when a
// mask reads none. A grid in front of theirs computes them once, into a tensor
//
//   (B', H', M tiles, numbers)
//
// where B' and H' are 1 unless the numbers differ from batch to batch, and from head to head.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_GRIDSBEFORE_H
#define ATTN_LIB_TRANSFORMS_ATTN_GRIDSBEFORE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include <array>

namespace attn {

/// Over (B, H, M tiles), as attn-tile-to-grid makes it.
bool isGridOverTiles(mlir::scf::ForallOp grid);

/// Fails if the value cannot be computed in a block of another grid; adds the indices of the grid
/// that it is computed from. Searches (scf.while) can.
mlir::LogicalResult collectIndices(mlir::Value value, mlir::scf::ForallOp grid,
                                   llvm::SmallDenseSet<mlir::Value> &indices);

/// The value in a block of another grid, whose indices are mapped.
mlir::Value copyInto(mlir::OpBuilder &builder, mlir::IRMapping &mapping, mlir::Value value,
                     mlir::scf::ForallOp grid);

/// Which of its three dimensions the numbers differ over: that of tiles, and what indices say.
std::array<bool, 3> getDifferences(mlir::scf::ForallOp grid,
                                   const llvm::SmallDenseSet<mlir::Value> &indices);

/// How far a grid in front of `grid` goes: to 1 where its numbers do not differ.
llvm::SmallVector<mlir::OpFoldResult> getEndsBefore(mlir::scf::ForallOp grid,
                                                    const std::array<bool, 3> &differs);

/// Memory for `count` numbers (i32) of each tile.
mlir::Value emitEmptyBefore(mlir::OpBuilder &builder, mlir::scf::ForallOp grid,
                            const std::array<bool, 3> &differs, mlir::OpFoldResult count);

/// An empty grid of blocks from 0, of three dimensions or, with what blocks of a tile share out
/// before them, four. The builder is in its body afterwards.
mlir::scf::ForallOp emitGridBefore(mlir::OpBuilder &builder, mlir::Location loc,
                                   llvm::ArrayRef<mlir::OpFoldResult> ends,
                                   llvm::ArrayRef<mlir::OpFoldResult> steps, mlir::ValueRange outs);

/// Where the numbers of the block's tile of rows are: the indices over B', H' and M tiles, in a
/// block of the grid before.
llvm::SmallVector<mlir::OpFoldResult> getTileOfRows(mlir::OpBuilder &builder, mlir::Location loc,
                                                    mlir::scf::ForallOp grid);
/// The same in a block of the grid after it.
llvm::SmallVector<mlir::Value> getTileBefore(mlir::OpBuilder &builder, mlir::scf::ForallOp grid,
                                             const std::array<bool, 3> &differs);

/// A number of the block's tile, as an index.
mlir::Value emitReadBefore(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                           llvm::ArrayRef<mlir::Value> tile, mlir::Value at);

/// Lets the grid's result at the slice be what has been made of the slice.
void emitInsert(mlir::OpBuilder &builder, mlir::Location loc, mlir::scf::ForallOp grid,
                mlir::Value result, mlir::tensor::ExtractSliceOp slice);

/// value / divisor, rounded up or down.
mlir::OpFoldResult emitCeilDiv(mlir::OpBuilder &builder, mlir::Location loc,
                               mlir::OpFoldResult value, int64_t divisor);
mlir::OpFoldResult emitQuotient(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::OpFoldResult value, int64_t divisor);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_GRIDSBEFORE_H
