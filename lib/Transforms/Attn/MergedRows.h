//===- MergedRows.h - rows of a block that merges ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_MERGEDROWS_H
#define ATTN_LIB_TRANSFORMS_ATTN_MERGEDROWS_H

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Machine/Lanes.h"
#include "lib/Transforms/Attn/Target.h"

namespace attn {

/// Rows of a block of a GPU that joins parts of so many columns: as few as its warps have when
/// lanes lie along the columns. It only moves memory, of which few rows are little, and many blocks
/// wait for it at the same time.
inline int64_t getJoinedRows(mlir::Operation *op, int64_t columns) {
  return getLanesAlongRows(columns, plan::getMachine(op).getWarps(1)).rows;
}

/// Rows of a block that merges: those on a GPU, otherwise `most`.
inline int64_t getMergedRows(MergeOp op, int64_t most) {
  int64_t columns = op.getPartial().getType().getShape().back();
  if (!isForGPU(op) || mlir::ShapedType::isDynamic(columns))
    return most;
  return getJoinedRows(op, columns);
}

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_MERGEDROWS_H
