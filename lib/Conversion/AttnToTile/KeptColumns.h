//===- KeptColumns.h - which columns of a tile are kept ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KEPTCOLUMNS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KEPTCOLUMNS_H

#include "lib/Conversion/AttnToTile/TileBuilder.h"

namespace attn {

/// `keep`, also false for columns before `begin`, in one of its own comparisons where it has one of
/// the kind. `distances` are those of the columns from `begin`.
mlir::Value narrowFrom(TileBuilder &b, mlir::Value keep, mlir::Value columns, mlir::Value distances,
                       mlir::Value begin);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_KEPTCOLUMNS_H
