//===- Meetings.h - where the threads of a block without roles meet ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_MEETINGS_H
#define ATTN_LIB_TRANSFORMS_TILE_MEETINGS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::tile {

/// Lets threads wait for their shares of copies, and meet, wherever one accesses a place that
/// another may still write or read. Meetings that are there count. Rows that
/// products must not read are cleared between two meetings.
void meetBetweenAccesses(mlir::func::FuncOp kernel);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_MEETINGS_H
