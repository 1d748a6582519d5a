//===- MoveRows.h - rows on their way into caches, on tiles ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_MOVEROWS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_MOVEROWS_H

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Makes the kernel of an op that moves rows: a block for some heads of each row. `arguments` are
/// the kernel's by what they are in the function, and `create` makes one without a body, whose name
/// ends so.
mlir::LogicalResult
convertMovedRows(mlir::Operation *op, const llvm::DenseMap<mlir::Value, unsigned> &arguments,
                 llvm::function_ref<mlir::func::FuncOp(llvm::StringRef, tile::KernelAttr)> create);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_MOVEROWS_H
