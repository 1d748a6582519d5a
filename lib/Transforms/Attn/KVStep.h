//===- KVStep.h - one step of the loop over key tiles ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_KVSTEP_H
#define ATTN_LIB_TRANSFORMS_ATTN_KVSTEP_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

/// Emits `op` on keys [n0, n0 + size) of `key` and `value`, which hold all of them; the first is at
/// global position `origin` + n0. Returns the new (acc, row_max, row_sum). Score and mask regions
/// are cloned, the mask only if asked for.
mlir::ValueRange emitKVStep(mlir::OpBuilder &builder, OnlineAttentionOp op, mlir::Value key,
                            mlir::Value value, mlir::OpFoldResult origin, mlir::Value n0,
                            mlir::OpFoldResult size, mlir::ValueRange state, bool withMask);

/// min(block_n, N - n0): the keys of the tile at n0.
mlir::OpFoldResult emitTileSize(mlir::OpBuilder &builder, mlir::Location loc, int64_t blockN,
                                mlir::Value n0, mlir::OpFoldResult n);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_KVSTEP_H
