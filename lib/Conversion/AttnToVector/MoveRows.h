//===- MoveRows.h - rows on their way into caches, as loops over vectors -----------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_MOVEROWS_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_MOVEROWS_H

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "lib/Conversion/AttnToVector/Emitter.h"

namespace attn {

/// Lowers the op, on buffers, and erases it.
mlir::LogicalResult lowerAppend(AppendOp op, const VectorTarget &target);
mlir::LogicalResult lowerRotary(RotaryOp op, const VectorTarget &target);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_MOVEROWS_H
