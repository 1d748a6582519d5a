//===- Ways.h - functions for some calls -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_WAYS_H
#define ATTN_LIB_TRANSFORMS_ATTN_WAYS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// A copy of the function for calls whose extents lie in the ranges `when`, in front of it: the
/// first function whose ranges hold is the one that runs.
mlir::func::FuncOp addWay(mlir::func::FuncOp function, llvm::StringRef suffix, mlir::ArrayAttr when,
                          mlir::SymbolTable &symbols);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_WAYS_H
