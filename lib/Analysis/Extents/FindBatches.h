//===- FindBatches.h - whether batches are independent of each other --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_EXTENTS_FINDBATCHES_H
#define ATTN_LIB_ANALYSIS_EXTENTS_FINDBATCHES_H

#include "lib/Analysis/Extents/FindExtents.h"

namespace attn {

/// The argument that a value is, seen through casts and assumptions.
std::optional<unsigned> findArgumentNumber(mlir::func::FuncOp function, mlir::Value value);

/// FunctionExtents::batches, by the rest of it.
llvm::SmallVector<BatchDim> findBatches(mlir::func::FuncOp function,
                                        const FunctionExtents &extents);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_EXTENTS_FINDBATCHES_H
