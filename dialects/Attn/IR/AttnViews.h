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
#include <optional>

namespace attn {

/// The most heads of a group that rows are packed of (slots_c1).
inline constexpr int64_t kMostSlots = 64;

/// A size that an argument tells: (size of its dimension - less) * multiplier.
struct ArgumentSize {
  mlir::BlockArgument argument;
  int64_t dim, multiplier = 1, less = 0;
};
/// The size of a function's argument, or of a view of one: heads as rows, pages, or sequences.
std::optional<ArgumentSize> findArgumentSize(mlir::Value value, int64_t dim);
/// The same of a size as the function computes it.
std::optional<ArgumentSize> findArgumentSize(mlir::Value size);

/// The value of whose slices this is one, or itself.
mlir::Value lookThroughSlices(mlir::Value value);
/// The view of sequences that a value is a slice of, packed, scaled or not; or null.
RaggedOp findRagged(mlir::Value value);

/// A size of the view (B, H, M, D) of pages or of sequences.
mlir::OpFoldResult emitSize(mlir::OpBuilder &builder, mlir::Location loc, PagedOp view,
                            int64_t dim);
mlir::OpFoldResult emitSize(mlir::OpBuilder &builder, mlir::Location loc, RaggedOp view,
                            int64_t dim);

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
