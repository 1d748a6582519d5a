//===- KVLoop.h - the loop over key tiles -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_KVLOOP_H
#define ATTN_LIB_TRANSFORMS_ATTN_KVLOOP_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// What attn-tile-kv-loop makes: a loop over [0, numKeys) whose body is one step on a tile of `key`
/// and `value`.
struct KVLoop {
  mlir::scf::ForOp loop;
  OnlineAttentionOp step;
  mlir::Value key, value, numKeys;
  int64_t blockN;
  /// Global position of the first key: the step's position less the loop's index.
  mlir::OpFoldResult origin;
};

/// The loop around `step`, or failure if it is another. May emit the origin in front of it.
llvm::FailureOr<KVLoop> matchKVLoop(mlir::OpBuilder &builder, OnlineAttentionOp step);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_KVLOOP_H
