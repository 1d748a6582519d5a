//===- VisitDoor.h - looking at a module on its way through the rooms -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_VISITDOOR_H
#define ATTN_LIB_PIPELINES_VISITDOOR_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <functional>

namespace attn {

/// Called with each room's name when a module leaves it. It may look and change nothing.
using DoorVisitor = std::function<void(llvm::StringRef room, mlir::ModuleOp module)>;

/// A pass that calls `visit`; none without a visitor.
void addVisit(mlir::OpPassManager &pm, llvm::StringRef room, const DoorVisitor &visit);

} // namespace attn

#endif // ATTN_LIB_PIPELINES_VISITDOOR_H
