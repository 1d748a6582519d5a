//===- FindExtents.h - the extents that a function relies on ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_EXTENTS_FINDEXTENTS_H
#define ATTN_LIB_ANALYSIS_EXTENTS_FINDEXTENTS_H

#include "lib/Plan/Extent.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

struct FunctionExtents {
  /// Of each argument and then each result: its dimensions, or the one value of an index argument.
  llvm::SmallVector<ExtentDims> values;
  unsigned numGroups = 0;
  /// In the order of the program: rules define the letters that later rules need.
  llvm::SmallVector<ExtentRule> rules;
  /// The groups of each attention's letters.
  llvm::SmallVector<std::array<unsigned, kNumAttentionLetters>> attentions;
  /// The dimension that is the batch of each value that has one, where batches are independent of
  /// each other: a call is then the same as calls with some of the batches each. Else empty.
  llvm::SmallVector<BatchDim> batches;
  /// The first op whose extents are not known, and a reason; then the rules do not say all.
  mlir::Operation *unknown = nullptr;
  std::string reason;
};

FunctionExtents findExtents(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_EXTENTS_FINDEXTENTS_H
