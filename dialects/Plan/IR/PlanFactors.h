//===- PlanFactors.h - what attributes say, as the plan has it --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_PLAN_IR_PLANFACTORS_H
#define ATTN_DIALECTS_PLAN_IR_PLANFACTORS_H

#include "lib/Plan/KernelPlan.h"
#include "mlir/IR/Operation.h"

namespace attn::plan {

/// An extent, parts, multiprocessors or an integer as a factor.
SizeFactor toFactor(mlir::Attribute factor);

/// The way that a function is, as `plan.way` and `plan.when` say it.
WayPlan getWay(mlir::Operation *function);

} // namespace attn::plan

#endif // ATTN_DIALECTS_PLAN_IR_PLANFACTORS_H
