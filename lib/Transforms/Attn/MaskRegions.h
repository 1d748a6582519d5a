//===- MaskRegions.h - what passes ask of mask regions --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_MASKREGIONS_H
#define ATTN_LIB_TRANSFORMS_ATTN_MASKREGIONS_H

#include "lib/Analysis/MaskTiles/MaskTiles.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// The fact that attn.assume states about a captured tensor.
std::optional<TensorFact> factOf(mlir::Value tensor);

/// Lets the mask see the position with number `position` counted from `origin`: the coordinates in
/// which a loop runs.
void shiftMask(mlir::OpBuilder &builder, mlir::Location loc, mlir::Region &mask, unsigned position,
               mlir::OpFoldResult origin);

/// Whether only its elements tell which tiles the mask keeps whole: it reads tensors at rows or
/// keys, and the analysis knows no full tile.
bool hidesFullTiles(mlir::Region &mask);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_MASKREGIONS_H
