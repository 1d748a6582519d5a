//===- CapturedSum.h - gradients of captured tensors, which blocks add to -----------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Room 3 has one order of the sum: a block owns a part of the gradient and loops over what is left
// of batches, heads and tiles of rows. Here each turn of these loops is a block of its own, which
// adds to memory in any order. Nothing is loaded and stored again, so control flow carries only the
// part of the sum that a block has not added yet: a sum of each row for each contribution whose
// indices do not depend on the key.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_CAPTUREDSUM_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_CAPTUREDSUM_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToTile/TileBuilder.h"
#include "lib/Machine/Machine.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace attn {

/// Which elements of a tile a contribution adds to one place, as far as its indices tell.
enum class SharedPlace { Element, Row, Diagonal };

struct CapturedSum {
  /// The first step of the grid; the others are copies, some without a mask.
  GradCapturedStepOp step;
  /// Loops whose turns are blocks, and which of the grid's dimensions (B, H, M tiles) numbers them:
  /// one that the grid itself does not use.
  llvm::SmallDenseMap<mlir::Operation *, unsigned> loops;
  /// Of each contribution of a step; addends that share a place are summed before they are added.
  llvm::SmallVector<SharedPlace> places;
  /// The block's part of the gradient.
  ArgumentSlice part;

  unsigned countByRow() const { return llvm::count(places, SharedPlace::Row); }
};

class BlockConverter;

/// Of a grid that makes the gradient of a captured tensor; nothing of others.
std::optional<CapturedSum> findCapturedSum(mlir::scf::ForallOp grid);
/// Whether the grid is as attn-online-softmax and the passes after it leave it.
mlir::LogicalResult checkCapturedSum(mlir::scf::ForallOp grid, const CapturedSum &sum);

/// The place in memory of the contribution's indices within the block's part, each a scalar or a
/// tile of `shape`. It is where the element was read (s13).
llvm::SmallVector<mlir::Value> getPlace(BlockConverter &block, ContributeOp contribution,
                                        mlir::ValueRange indices, mlir::RankedTensorType shape);
/// Adds the sums of rows, after all loops.
mlir::LogicalResult addRows(BlockConverter &block, mlir::ValueRange unadded);

/// A kernel before that of the sum makes its memory zeros: a block of the grid makes one tile.
/// Sizes follow from arguments of the function.
mlir::FailureOr<mlir::ArrayAttr> getGridOfZeros(mlir::Operation *function, mlir::MemRefType type,
                                                llvm::ArrayRef<mlir::OpFoldResult> sizes);
void emitZeros(TileBuilder &b, mlir::Value memref);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_CAPTUREDSUM_H
