//===- RoleBudgets.h - registers of roles that copy and roles that compute -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_ROLEBUDGETS_H
#define ATTN_LIB_TRANSFORMS_TILE_ROLEBUDGETS_H

#include "lib/Machine/Machine.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::tile {

/// Registers of a kernel of level `placed` with `consumers` warpgroups in addition to the
/// producer's, at most as many as the machine has budgets for.
RoleBudget getRoleBudget(mlir::func::FuncOp kernel, int64_t consumers);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_ROLEBUDGETS_H
