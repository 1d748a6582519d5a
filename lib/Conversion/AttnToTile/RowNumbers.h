//===- RowNumbers.h - numbers of rows that kernels of a gradient leave --------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The kernel of rows leaves neg_lse2 and delta of attn.grad_rows as scratch, which is nobody
// else's. Memory holds -delta: the pass over keys starts products with it, and so its loop changes
// no sign.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_ROWNUMBERS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_ROWNUMBERS_H

#include "lib/Conversion/AttnToTile/TileBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// Scratch with a number for each row of queries, in rows of memory that start at multiples of 16
/// bytes, as copies ask for. Copies read zeros after the last row.
struct RowNumbers {
  mlir::Value memref;
  /// Whether memory holds the opposite of each number.
  bool isNegated;
};

/// Whether blocks of the grid make such numbers.
bool hasRowNumbers(mlir::scf::ForallOp grid);

/// Whether memory is to hold the opposite of the numbers that a grid leaves for later grids:
/// deltas, where steps and sums alone read them.
bool areNegated(mlir::Value numbers);

/// The opposite of a tile or a number where that is so.
mlir::Value negateIf(TileBuilder &b, bool isNegated, mlir::Value numbers);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_ROWNUMBERS_H
