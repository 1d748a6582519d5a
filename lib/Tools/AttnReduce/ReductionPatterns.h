//===- ReductionPatterns.h - how a program of attention is made smaller -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNREDUCE_REDUCTIONPATTERNS_H
#define ATTN_LIB_TOOLS_ATTNREDUCE_REDUCTIONPATTERNS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace attn {

/// Lets `--reduction-tree` take parts off an attention: its variants, its score and its mask.
void registerReductionPatterns(mlir::DialectRegistry &registry);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNREDUCE_REDUCTIONPATTERNS_H
