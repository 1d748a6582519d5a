//===- WidenRegion.h - a score or mask region in another float type ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOLINALG_WIDENREGION_H
#define ATTN_LIB_CONVERSION_ATTNTOLINALG_WIDENREGION_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

/// Inlines the region's body at the insertion point with its f32 arithmetic done in `type` (f32 or
/// f64) and returns what it yields: number `yielded`. `arguments` are in `type` where the region's
/// are f32.
/// Captured f32 scalars are widened. `contribute` is shown each contribution with its addend in
/// `type` and its indices; without it there are none.
mlir::Value inlineWidened(
    mlir::OpBuilder &builder, mlir::Region &region, mlir::ValueRange arguments,
    mlir::FloatType type,
    llvm::function_ref<void(ContributeOp, mlir::Value, mlir::ValueRange)> contribute = nullptr,
    unsigned yielded = 0);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOLINALG_WIDENREGION_H
