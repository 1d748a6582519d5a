//===- CountRegisters.h - registers that the tiles of a program take --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_REGISTERS_COUNTREGISTERS_H
#define ATTN_LIB_ANALYSIS_REGISTERS_COUNTREGISTERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"

namespace attn::tile {

/// Registers of a thread, and the op after which tiles take them.
struct RegisterCount {
  int64_t registers = 0;
  mlir::Operation *where = nullptr;
};

/// The most that the tiles of a program of room 6 take at once. Addresses, scalars and other values
/// of the target's compiler come on top.
RegisterCount countRegisters(mlir::Region &region);

/// A role of a kernel, and the registers of a thread that it may take.
struct RoleCount {
  llvm::StringRef name;
  int64_t budget;
  RegisterCount taken;
};

/// All roles of a kernel. One without roles is a role "block".
llvm::SmallVector<RoleCount> countRegisters(mlir::func::FuncOp kernel);

} // namespace attn::tile

#endif // ATTN_LIB_ANALYSIS_REGISTERS_COUNTREGISTERS_H
