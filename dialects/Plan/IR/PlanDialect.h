//===- PlanDialect.h - the plan dialect: what is said about calls
//------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_PLAN_IR_PLANDIALECT_H
#define ATTN_DIALECTS_PLAN_IR_PLANDIALECT_H

#include "lib/Machine/Machine.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <limits>

#include "dialects/Plan/IR/PlanDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/IR/PlanAttrs.h.inc"

namespace attn::plan {

/// The machine of the op's module: that of the `plan.target` around it, or the default.
const Machine &getMachine(mlir::Operation *op);

/// Whether a factor of a grid, or of the sizes of scratch, is made of dimensions that the
/// function's arguments have; or an error.
mlir::LogicalResult verifyFactor(mlir::FunctionOpInterface function, mlir::Attribute factor);

} // namespace attn::plan

#endif // ATTN_DIALECTS_PLAN_IR_PLANDIALECT_H
