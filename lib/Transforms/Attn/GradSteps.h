//===- GradSteps.h - gradients as steps over tiles --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_GRADSTEPS_H
#define ATTN_LIB_TRANSFORMS_ATTN_GRADSTEPS_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

/// Each replaces an op of one batch and one head by steps on tensors without these dimensions, and
/// erases it.
void makeRowSteps(mlir::RewriterBase &rewriter, RowDeltaOp op);
void makeQuerySteps(mlir::RewriterBase &rewriter, AttentionGradQueryOp op);
void makeKeyValueSteps(mlir::RewriterBase &rewriter, AttentionGradKeyValueOp op);

/// The regions of one op of gradients, and what rides on it, for another.
void copyRegions(mlir::Operation *from, mlir::Operation *to);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_GRADSTEPS_H
