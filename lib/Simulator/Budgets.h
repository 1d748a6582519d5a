//===- Budgets.h - the resources of a block ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_BUDGETS_H
#define ATTN_LIB_SIMULATOR_BUDGETS_H

#include "lib/Simulator/Finding.h"
#include "lib/Simulator/Program.h"

namespace attn::sim {

/// Places and barriers: inside of a block's shared memory, none of a barrier's inside of a tile's.
void checkShared(mlir::func::FuncOp kernel, std::vector<Finding> &findings);

/// The tiles that are live at once, against the registers of each role. A lower bound: addresses,
/// scalars and other values of the target's compiler come on top.
void checkRegisters(const Program &program, std::vector<Finding> &findings);

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_BUDGETS_H
