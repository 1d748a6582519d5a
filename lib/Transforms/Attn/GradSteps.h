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
void makeDeltaSteps(mlir::RewriterBase &rewriter, AttentionGradDeltaOp op);
void makeQuerySteps(mlir::RewriterBase &rewriter, AttentionGradQueryOp op);
void makeKeyValueSteps(mlir::RewriterBase &rewriter, AttentionGradKeyValueOp op);

/// A grid of its own, with loops of steps, for an op that has the gradient of one captured tensor.
mlir::LogicalResult makeCapturedSteps(mlir::RewriterBase &rewriter, AttentionGradQueryOp op);

/// The factor of the dot products, 1/sqrt(D) where there is none.
mlir::Value emitScale(mlir::OpBuilder &builder, ScoredOpInterface op);
/// Regions of `from` and what rides on it. Finite scores stay finite in base 2.
void takeRegions(mlir::OpBuilder &builder, mlir::Operation *from, mlir::Operation *to,
                 mlir::Region &score, mlir::Value negLow2);

/// The regions of one op of gradients, and what rides on it, for another.
void copyRegions(mlir::Operation *from, mlir::Operation *to);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_GRADSTEPS_H
