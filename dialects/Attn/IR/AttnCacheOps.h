//===- AttnCacheOps.h - rows on their way into caches -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNCACHEOPS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNCACHEOPS_H

#include "dialects/Attn/IR/AttnOps.h"
#include <optional>

#define GET_OP_CLASSES
#include "dialects/Attn/IR/AttnCacheOps.h.inc"

namespace attn {

/// Rows (T, H, D) on their way: one form of attn.append and attn.rotary, for passes that carry them
/// out.
struct MovedRows {
  /// Those that the op moves; nothing for another op, or none.
  static std::optional<MovedRows> find(mlir::Operation *op);
  /// R / 2, the pairs that are turned; 0 where none are.
  int64_t countPairs() const {
    return cos ? mlir::cast<mlir::ShapedType>(cos.getType()).getDimSize(1) : 0;
  }

  mlir::Value source;
  /// Null: row t goes to row t of the destination, which has no pages.
  mlir::Value slots;
  /// All or none.
  mlir::Value positions, cos, sin;
  mlir::Value dest;
  bool isInterleaved;
};

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNCACHEOPS_H
