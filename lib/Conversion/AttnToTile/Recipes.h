//===- Recipes.h - ops of attention on tiles -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Files go by the ops: OnlineAttention, ListTiles, Normalize, Merge, GradRows, GradStep. A recipe
// finds the tiles and slices that its operands have become in the block, emits, and says what its
// results are.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_RECIPES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_RECIPES_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToTile/BlockConverter.h"
#include <limits>
#include <optional>

namespace attn {

/// The maximum of no score, and the log-sum-exp of a row that keeps no key.
inline constexpr double kLowest = -std::numeric_limits<double>::infinity();

/// By the op's recipe.
mlir::LogicalResult convertAttention(BlockConverter &block, mlir::Operation &op);

mlir::LogicalResult convertStep(BlockConverter &block, OnlineAttentionOp op);
mlir::LogicalResult convertTileStatus(BlockConverter &block, TileStatusOp op);
mlir::LogicalResult convertListTiles(BlockConverter &block, ListTilesOp op);
mlir::LogicalResult convertNormalize(BlockConverter &block, NormalizeOp op);
/// Natural logarithms of a block's rows in base 2. A multiply-add of nothing rounds by itself: of a
/// product and the sum after it assemblers make one rounding.
mlir::Value toBase2(TileBuilder &b, mlir::Value lse);

/// s17: the part of `lse` for which f32 has no digits, in base 2; `lse` is `max` and `sumLog2`
/// together.
mlir::Value emitLow(TileBuilder &b, mlir::Value lse, mlir::Value max, mlir::Value sumLog2);

mlir::LogicalResult convertMerge(BlockConverter &block, MergeOp op);
mlir::LogicalResult convertGradRows(BlockConverter &block, GradRowsOp op);
mlir::LogicalResult convertGradStep(BlockConverter &block, GradDeltaStepOp op);
mlir::LogicalResult convertGradStep(BlockConverter &block, GradQueryStepOp op);
mlir::LogicalResult convertGradStep(BlockConverter &block, GradKeyValueStepOp op);
mlir::LogicalResult convertGradStep(BlockConverter &block, GradCapturedStepOp op);
mlir::LogicalResult convertGradDeltaEnd(BlockConverter &block, GradDeltaEndOp op);
mlir::LogicalResult convertGradEnd(BlockConverter &block, GradEndOp op);
/// Zeros in tiles of `running` rows of the sum of gradients of queries: in those whose first rows
/// the block owns. It has `rows` rows from `position` in (B, H, M, D), or `size` of them where a
/// sequence ends.
void startQuerySum(TileBuilder &b, mlir::Value sum, int64_t running,
                   llvm::ArrayRef<mlir::Value> position, int64_t rows, mlir::Value size = {});
/// The block's rows of the sum of gradients of queries: `size` rows from `position` in (B, H, M,
/// D).
mlir::Value loadQuerySum(BlockConverter &block, llvm::ArrayRef<mlir::Value> position,
                         mlir::Value size, int64_t columns);
/// A sum in one dimension over the others, as a sink's gradient is.
mlir::LogicalResult convertSum(BlockConverter &block, mlir::linalg::GenericOp op);

/// Checks that the tiles have as many rows as the grid's.
mlir::LogicalResult checkRows(mlir::Operation *op, int64_t rows, mlir::ValueRange tiles);

/// The scale of all steps of a grid when it is a positive constant and nothing but masks comes
/// between it and the softmax: running maxima are then of unscaled scores.
std::optional<double> findFoldedScale(mlir::scf::ForallOp grid);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_RECIPES_H
