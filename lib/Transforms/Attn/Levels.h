//===- Levels.h - the doors between the rooms ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_LEVELS_H
#define ATTN_LIB_TRANSFORMS_ATTN_LEVELS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace attn {

/// What is true of the IR between two rooms.
///
///   problem  whole tensors: func, tensor, arith, math, linalg and attn ops; no running softmax
///   state grid     every attn.attention covers one batch, one head and at most block_m rows,
///   inside one scf.forall over
///            (B, H, M tiles) mapped to blocks; no variants
///   online   no attn.attention; attn.online_attention carries (acc, row_max, row_sum),
///   attn.normalize ends it
enum class Level { Problem, Grid, Online };

llvm::StringRef stringifyLevel(Level level);
std::optional<Level> symbolizeLevel(llvm::StringRef name);

/// Succeeds if and only if everything below `root` is in the level; otherwise reports the first op
/// that is not.
mlir::LogicalResult verifyLevel(mlir::Operation *root, Level level);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_LEVELS_H
