//===- EmitPTX.h - from the LLVM dialect to PTX ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_PTX_EMITPTX_H
#define ATTN_LIB_TARGET_PTX_EMITPTX_H

#include "lib/Target/PTX/KernelPlan.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace attn {

struct PTXOptions {
  /// The architecture, with its specific features.
  std::string chip = "sm_90a";
  /// The oldest PTX that has copies into shared::cta; drivers from R565 on take it.
  std::string features = "+ptx86";
};

/// Where the time went, in milliseconds.
struct PTXTimings {
  double translate = 0, optimize = 0, generate = 0;
};

/// Compiles the kernels of a module in room `thread`, in process. LLVM's refusals are errors,
/// never the end of the process.
llvm::Expected<std::string> emitPTX(mlir::ModuleOp module, const PTXOptions &options = {},
                                    PTXTimings *timings = nullptr);

/// The plans of the module's kernels, in order.
llvm::Expected<std::vector<KernelPlan>> getKernelPlans(mlir::ModuleOp module);

} // namespace attn

#endif // ATTN_LIB_TARGET_PTX_EMITPTX_H
