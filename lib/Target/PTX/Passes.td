//===- Passes.td - room 8 as a pass, for pipelines written by hand ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_PTX_PASSES_TD
#define ATTN_TARGET_PTX_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitPTXPass : Pass<"emit-ptx", "::mlir::ModuleOp"> {
  let summary = "writes the PTX and the plans of the module's kernels to files";
  let description = [{
    The product calls `emitPTX` and `getKernelPlans` itself; this is how a pipeline written by hand
    gets at their results.

    Requires: room 7 `thread`. Produces: room 7 `thread`, unchanged, `ptx` and `plan` (either may be
    left out). Fails when: LLVM refuses the module, or a file cannot be written.
  }];
  let options = [
    Option<"ptx", "ptx", "std::string", [{""}], "where to write the PTX; - is standard output">,
    Option<"plan", "plan", "std::string", [{""}], "where to write the plans; - is standard output">,
    Option<"timings", "timings", "bool", "false", "tell on standard error where the time went">];
}

#endif // ATTN_TARGET_PTX_PASSES_TD
