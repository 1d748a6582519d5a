//===- ClearRows.h - zeros in rows of no sequence ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_CLEARROWS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_CLEARROWS_H

#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Conversion/AttnToTile/TileBuilder.h"

namespace attn {

/// The grid of a kernel that clears rows of a result whose sequences are as `ragged` says.
mlir::ArrayAttr getGridOfClearing(plan::RaggedAttr ragged);

/// Stores zeros in the rows of `result` (T, H, D) that belong to no sequence, or that a sequence
/// has beyond the most that there are tiles for. Arguments are those of the kernel.
void emitClearing(TileBuilder &b, mlir::ValueRange arguments, mlir::Value result,
                  plan::RaggedAttr ragged);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_CLEARROWS_H
