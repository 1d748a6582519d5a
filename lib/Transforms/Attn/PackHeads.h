//===- PackHeads.h - heads as rows -----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_PACKHEADS_H
#define ATTN_LIB_TRANSFORMS_ATTN_PACKHEADS_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Whether an attention is all that its function does with query, key and results. Query and key
/// are arguments (the key may lie in pages), and so is a sink of heads. Nothing else reads the
/// query, and results are returned.
bool canPackHeads(AttentionOp op);

/// Makes the attention one of key heads, with `slots` rows for each row of the query.
void packHeads(AttentionOp op, int64_t slots);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_PACKHEADS_H
