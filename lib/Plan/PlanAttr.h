//===- PlanAttr.h - kernel plans as attributes ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_PLANATTR_H
#define ATTN_LIB_PLAN_PLANATTR_H

#include "lib/Plan/KernelPlan.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"

namespace attn {

/// The plan as a dictionary with the fields of its JSON form.
mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context, const KernelPlan &plan);

/// The plan of such a dictionary.
llvm::Expected<KernelPlan> fromAttribute(mlir::DictionaryAttr attribute);

} // namespace attn

#endif // ATTN_LIB_PLAN_PLANATTR_H
