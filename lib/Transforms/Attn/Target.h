//===- Target.h - what a program is for ---------------------------------------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_TARGET_H
#define ATTN_LIB_TRANSFORMS_ATTN_TARGET_H

#include "dialects/Plan/IR/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Whether the module of the op names a GPU as its target, as attn-set-schedule does.
inline bool isForGPU(mlir::Operation *op) {
  return op->getParentOfType<mlir::ModuleOp>()->hasAttr(plan::PlanDialect::kTargetAttrName);
}

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_TARGET_H
