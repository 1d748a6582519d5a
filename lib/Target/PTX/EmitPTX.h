//===- EmitPTX.h - from the LLVM dialect to PTX ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_PTX_EMITPTX_H
#define ATTN_LIB_TARGET_PTX_EMITPTX_H

#include "lib/Plan/KernelPlan.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace attn {

/// Where the time went, in milliseconds.
struct PTXTimings {
  double translate = 0, optimize = 0, generate = 0;
};

/// Compiles the kernels of a module in room `thread` for its machine, in process. LLVM's refusals
/// are errors, never the end of the process.
llvm::Expected<std::string> emitPTX(mlir::ModuleOp module, PTXTimings *timings = nullptr);

/// The plans of the module's kernels, in order.
llvm::Expected<std::vector<KernelPlan>> getKernelPlans(mlir::ModuleOp module);

} // namespace attn

#endif // ATTN_LIB_TARGET_PTX_EMITPTX_H
