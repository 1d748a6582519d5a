//===- Regions.h - score, mask and grad regions on tiles ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_REGIONS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_REGIONS_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToTile/BlockConverter.h"

namespace attn {

/// Inlines a region on tiles of coordinates; returns the yielded tile, or null with a diagnostic.
/// Arguments are tiles or scalars; an op with a tile among its operands works on tiles, others stay
/// scalar. `isFalse`, from outside of the region, is known to be. Of a region that yields two
/// values it is number `yielded`, and only the ops that it needs are inlined. The first argument
/// stands for `first` instead, where that is a value of the region.
mlir::Value inlineRegion(BlockConverter &block, mlir::Region &region, mlir::ValueRange arguments,
                         mlir::RankedTensorType shape, mlir::Value isFalse = {},
                         unsigned yielded = 0, mlir::Value first = {});

/// Numbers by which a score region multiplies the dot product before all else, each of which is one
/// for all scores of a head, as scales of elements are.
struct ScoreFactors {
  llvm::SmallVector<mlir::Value> factors;
  /// The product with all of them: the region's score itself where there are none.
  mlir::Value product;
  /// Whether the region yields that.
  bool isAll = false;
};
ScoreFactors findLeadingFactors(mlir::Region &score);

/// Whether the value of the region is one for all elements of a head.
bool isOfHead(mlir::Region &region, mlir::Value value);

/// The product of such values, computed once for all keys of a block; null of none.
mlir::FailureOr<mlir::Value> inlineHeadFactors(BlockConverter &block, OnlineAttentionOp op,
                                               llvm::ArrayRef<mlir::Value> factors);

/// Takes a contribution of a grad region to a captured tensor: the addend and the indices are tiles
/// or scalars.
using Contribute = llvm::function_ref<mlir::LogicalResult(ContributeOp, mlir::Value addend,
                                                          mlir::ValueRange indices)>;

/// Inlines those ops of a grad region that are `needed`, for their contributions alone. Arguments
/// that no op needs may be null, and so may addends.
mlir::LogicalResult inlineContributions(BlockConverter &block, mlir::Region &grad,
                                        mlir::ValueRange arguments, mlir::RankedTensorType shape,
                                        const llvm::DenseSet<mlir::Operation *> &needed,
                                        Contribute contribute);

/// The index, a scalar or a tile, or the nearest one inside of the dimension.
mlir::Value keepInside(TileBuilder &b, mlir::Value index, mlir::Value memref, int64_t dim);

/// The value outside of the mask that, where it is true, keeps everything: an operand of the or
/// that the mask yields. Null if there is none.
mlir::Value findKeepsAll(mlir::Region &mask);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_REGIONS_H
