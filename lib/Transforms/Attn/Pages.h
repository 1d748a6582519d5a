//===- Pages.h - operands that lie in pages --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_PAGES_H
#define ATTN_LIB_TRANSFORMS_ATTN_PAGES_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {

/// Whether tiles of the operand are rows of pages, and so begin at multiples of their size.
inline bool readsPages(mlir::Value keys) {
  while (auto slice = keys.getDefiningOp<mlir::tensor::ExtractSliceOp>())
    keys = slice.getSource();
  return bool(keys.getDefiningOp<PagedOp>());
}

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_PAGES_H
