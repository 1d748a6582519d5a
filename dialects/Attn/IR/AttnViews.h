//===- AttnViews.h - what views say of the tensors that they show ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNVIEWS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNVIEWS_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/IR/OpDefinition.h"

namespace attn {

/// The value of whose slices this is one, or itself.
mlir::Value lookThroughSlices(mlir::Value value);
/// The view of sequences that a value is a slice of, packed or not; or null.
RaggedOp findRagged(mlir::Value value);

/// s20: where the sequence of a batch begins in the rows, and how many rows of the view it has.
struct Sequence {
  mlir::Value begin, rows;
};
/// `total` is T, `most` is M.
Sequence emitSequence(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value offsets,
                      mlir::OpFoldResult total, mlir::OpFoldResult most, mlir::OpFoldResult batch);
Sequence emitSequence(mlir::OpBuilder &builder, mlir::Location loc, RaggedOp view,
                      mlir::OpFoldResult batch);

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNVIEWS_H
