//===- Work.h - which pairs of rows and keys count as work ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_WORK_H
#define ATTN_LIB_TOOLS_ATTNRUN_WORK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace attn {

/// The pairs of `rows` rows and `keys` keys that the mask of the function's attention keeps.
/// Nothing where tensors or a region decide, or where there is another number of attentions.
std::optional<double> countKeptPairs(mlir::func::FuncOp function, int64_t rows, int64_t keys);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_WORK_H
