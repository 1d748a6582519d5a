//===- PartialSums.h - sums of rows that stay apart by lanes ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_PARTIALSUMS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_PARTIALSUMS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"

namespace attn {

/// The running sums of all steps of a grid, with all that hold them in control flow; none if one of
/// them meets an op that is neither a step nor a normalize. An early decay of the sum lets the
/// accumulator follow early: beyond 128 columns of values that costs more than the lanes' exchange
/// (bench/NOTES.md), and there are none.
llvm::DenseSet<mlir::Value> findPartialSums(mlir::scf::ForallOp grid);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_PARTIALSUMS_H
