//===- OneHead.h - tensors of one batch and one head ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_ONEHEAD_H
#define ATTN_LIB_TRANSFORMS_ATTN_ONEHEAD_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {

/// (1, X) as (X), of which `count` dimensions go. A slice is taken again with the reduced type
/// rather than sliced twice.
mlir::Value dropFirst(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                      unsigned count);
/// (1, 1, X, Y) as (X, Y), (1, 1, X) as (X).
mlir::Value dropBatchAndHead(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Replaces a (1, 1, ...) result by the reduced value: the insertions into the grid's results take
/// it as it is.
void replaceReduced(mlir::RewriterBase &rewriter, mlir::Value result, mlir::Value reduced);

/// The size of the first dimension, as the slice states it if the value is one.
mlir::OpFoldResult getRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor);

/// The dimension of the source that a slice has as its first.
unsigned getRowsDim(mlir::tensor::ExtractSliceOp slice);

/// A new f32 tensor that holds `constant` everywhere.
mlir::Value emitFill(mlir::OpBuilder &builder, mlir::Location loc,
                     llvm::ArrayRef<mlir::OpFoldResult> sizes, float constant);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_ONEHEAD_H
