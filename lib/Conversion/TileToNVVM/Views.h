//===- Views.h - where positions of a view are in memory ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_VIEWS_H
#define ATTN_LIB_CONVERSION_TILETONVVM_VIEWS_H

#include "lib/Conversion/TileToNVVM/Kernel.h"

namespace attn::tile {

/// Coordinates (column, row, key head, ...) of a packed argument in its map's order: heads are
/// within rows.
llvm::SmallVector<mlir::Value> unpackCoordinates(mlir::OpBuilder &builder, mlir::Location loc,
                                                 const PackedRows &packed,
                                                 llvm::ArrayRef<mlir::Value> coordinates);

/// The page of a row of a batch, i32: what the table says, or -1 past the table's end and where an
/// entry has more bits than a coordinate.
mlir::Value emitPage(mlir::OpBuilder &builder, mlir::Location loc, const PageTable &table,
                     mlir::Value batch, mlir::Value row);

/// s20 of the attn dialect, i32: where the sequence of a batch begins, and how many rows it has.
struct SequenceRows {
  mlir::Value begin, rows;
};
SequenceRows emitSequence(mlir::OpBuilder &builder, mlir::Location loc, const RaggedRows &ragged,
                          mlir::Value batch);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_VIEWS_H
