//===- WayCopy.h - a function for some of the calls of another --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_WAYCOPY_H
#define ATTN_LIB_TRANSFORMS_ATTN_WAYCOPY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace attn {

/// A copy of the function for calls that meet a condition. The first function that is for a call is
/// the one that runs, so the copy comes before it. Its name is `base`, with the way's name.
mlir::func::FuncOp copyFor(mlir::func::FuncOp function, llvm::StringRef base, llvm::StringRef way,
                           llvm::ArrayRef<mlir::Attribute> conditions, mlir::SymbolTable &symbols);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_WAYCOPY_H
