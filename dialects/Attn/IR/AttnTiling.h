//===- AttnTiling.h - shared parts of the ops' tilings --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNTILING_H
#define ATTN_DIALECTS_ATTN_IR_ATTNTILING_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

/// Extracts the slice and records it, so that producers can be fused into it.
mlir::Value extractTile(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                        llvm::ArrayRef<mlir::OpFoldResult> offsets,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        llvm::SmallVectorImpl<mlir::Operation *> &slices);

mlir::OpFoldResult addPositions(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult a,
                                mlir::OpFoldResult b);

/// [0, size) of each size.
llvm::SmallVector<mlir::Range> rangesOf(mlir::OpBuilder &builder,
                                        llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// Key and value heads read by query heads [offset, offset + size): one when the tile is one head,
/// all when it is all; otherwise an error.
llvm::LogicalResult getKeyHeads(mlir::OpBuilder &builder, ScoredOpInterface op,
                                mlir::OpFoldResult offset, mlir::OpFoldResult size,
                                mlir::OpFoldResult &keyOffset, mlir::OpFoldResult &keySize);

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNTILING_H
