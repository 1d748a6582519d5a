//===- PlanDialect.td - the plan dialect ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef PLAN_DIALECT_TD
#define PLAN_DIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::attn::plan";
  let summary = "what is said about calls and the machine";
  let description = [{
    Attributes and no ops: which calls a function is for, how many blocks a call has, and which
    machine runs them. Both `attn` and `tile` stand on it, since a call is the same in all rooms.
    The numbered constraints are in `dialects/Plan/README.md`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The module attribute that names the machine of its kernels: a TargetAttr.
    static constexpr ::llvm::StringLiteral kTargetAttrName = "plan.target";
    /// The func.func attribute that says which calls a function is for: an ArrayAttr of conditions,
    /// each an ArrayAttr of RangeAttr. A call for which all ranges of one of them hold is such a call.
    static constexpr ::llvm::StringLiteral kWhenAttrName = "plan.when";
    /// The func.func attribute that names the way of running a function: a StringAttr.
    static constexpr ::llvm::StringLiteral kWayAttrName = "plan.way";
    /// The argument attribute that makes heads rows where a kernel accesses a memref: a PackedAttr.
    static constexpr ::llvm::StringLiteral kPackedAttrName = "plan.packed";
    /// The argument attribute that makes a memref of pages sequences of keys: a PagedAttr.
    static constexpr ::llvm::StringLiteral kPagedAttrName = "plan.paged";
    /// The argument attribute that makes rows of a memref sequences: a RaggedAttr.
    static constexpr ::llvm::StringLiteral kRaggedAttrName = "plan.ragged";
  }];
}

#endif // PLAN_DIALECT_TD
