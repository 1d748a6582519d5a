//===- AttnDropout.h - the factor of dropout ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNDROPOUT_H
#define ATTN_DIALECTS_ATTN_IR_ATTNDROPOUT_H

#include "dialects/Attn/IR/AttnVariants.h"

namespace attn {

/// Emits the factor (f32) of a weight at a position: 0 with probability p, else 1 / (1 - p). `seed`
/// is a tensor of one integer.
mlir::Value buildDropout(mlir::OpBuilder &builder, mlir::Location loc, DropoutAttr dropout,
                         const Position &at, mlir::Value seed);

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNDROPOUT_H
