//===- Passes.td - passes of rooms 1 to 3 -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TRANSFORMS_PASSES_TD
#define ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyLevelPass : Pass<"attn-verify-level"> {
  let summary = "succeeds if and only if the module is in a level";
  let description = [{
    The doors between the rooms. A level is a set of allowed ops and a few predicates on them; see
    `lib/Transforms/Attn/Levels.h`.

    Requires: nothing. Produces: the module unchanged. Fails when: an op does not belong to the level, named in the error.
  }];
  let options = [
    Option<"level", "level", "std::string", [{"problem"}], "problem, grid or online">];
}

def ExpandVariantsPass : Pass<"attn-expand-variants"> {
  let summary = "turns named variants (causal, window, alibi, ...) into score and mask regions";
  let description = [{
    After this pass nothing knows that a mask was spelled `causal`. Scores compose in the order of the list, masks are
    conjoined.

    Requires: level `problem`. Produces: level `problem` without `variants`. Fails when: never.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

#endif // ATTN_TRANSFORMS_PASSES_TD
