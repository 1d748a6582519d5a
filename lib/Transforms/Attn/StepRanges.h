//===- StepRanges.h - loops over ranges of tiles ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_STEPRANGES_H
#define ATTN_LIB_TRANSFORMS_ATTN_STEPRANGES_H

#include "lib/Analysis/MaskTiles/MaskTiles.h"
#include "lib/Transforms/Attn/StepLoop.h"

namespace attn {

/// Says which keys are kept (kKeptKeysAttrName) of the step that makes this state.
void setKeptKeys(mlir::ValueRange state, llvm::StringRef kept);

/// A step on what lies between the first and the last that matter in the tile at n0, with the mask.
mlir::ValueRange emitPartialStep(mlir::OpBuilder &builder, StepLoop over, mlir::Value n0,
                                 mlir::ValueRange state);

/// Emits the loops of a block over the tiles of `ranges` and lets them replace the results of
/// `over`. With `certain`, `if begin < end` stands around them, and the first step inside is
/// certain to run.
void emitStepRanges(mlir::OpBuilder &builder, StepLoop over, const MaskTiles::Ranges &ranges,
                    bool certain);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_STEPRANGES_H
