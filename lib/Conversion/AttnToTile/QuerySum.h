//===- QuerySum.h - gradients of queries that blocks of keys add up -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_QUERYSUM_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_QUERYSUM_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// Two grids of one gradient: blocks that own keys make the sums that blocks that own rows would
/// make.
struct FusedGrids {
  mlir::scf::ForallOp keys, rows;
  /// The grid before them, which makes the numbers of rows that both read. Its blocks start the sum
  /// with zeros.
  mlir::scf::ForallOp numbers;
  /// (B, H, M, D): of the function, or a view of sequences.
  mlir::Value query;
  /// Rows of a tile, and D.
  int64_t running, columns;
  /// Whether D is in the rows of the product.
  bool isTransposed;

  /// (B, H, tiles of rows, matrix)
  mlir::MemRefType getType() const;
  /// The first three sizes of that.
  mlir::FailureOr<mlir::Attribute> getSize(unsigned dim);
};

/// Those that attn-split-grad has marked, where the schedule's block can.
llvm::SmallVector<FusedGrids> findFusedGrids(llvm::ArrayRef<mlir::scf::ForallOp> grids);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_QUERYSUM_H
