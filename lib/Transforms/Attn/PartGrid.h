//===- PartGrid.h - grids with a part as their first index ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_PARTGRID_H
#define ATTN_LIB_TRANSFORMS_ATTN_PARTGRID_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// Blocks of up to four dimensions, the last one fastest. With `headsFirst`, of four: (B, H) first,
/// the last one fastest, then parts, then tiles.
llvm::SmallVector<mlir::Attribute> getBlockMapping(mlir::MLIRContext *context, unsigned rank,
                                                   bool headsFirst = false);

/// The grid (parts, B, H, tiles) of a grid (B, H, tiles), before it: it has the body, and its
/// results are `partials`. The body still inserts into the old results, which is to be replaced;
/// the old grid has no body any more. With `slots`, parts tell their batches, and B is 1.
mlir::scf::ForallOp addParts(mlir::RewriterBase &rewriter, mlir::scf::ForallOp grid,
                             mlir::OpFoldResult parts, mlir::ValueRange partials,
                             bool headsFirst = false, bool slots = false);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_PARTGRID_H
