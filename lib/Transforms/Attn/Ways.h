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

/// Words of the option `way`: the calls that sizes are for, or auto.
inline constexpr llvm::StringLiteral kWays[] = {"auto", "short", "long", "few", "narrow"};

/// The function for calls whose extents lie in the ranges `when`: a copy, in front, since the first
/// function whose ranges hold is the one that runs. Where types say so of all calls it is the
/// function itself; where no call's do, null.
mlir::func::FuncOp addWay(mlir::func::FuncOp function, llvm::StringRef suffix, mlir::ArrayAttr when,
                          mlir::SymbolTable &symbols);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_WAYS_H
