//===- Passes.td - the reference lowering ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOLINALG_PASSES_TD
#define ATTN_CONVERSION_ATTNTOLINALG_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToLinalgPass : Pass<"convert-attn-to-linalg"> {
  let summary = "the semantics of attention, executable: slow and obvious";
  let description = [{
    Every line of the definition becomes one linalg.generic over whole tensors: the scores, their
    function and mask, the row maximum, the exponentials, their sum, the product with the values.
    Of gradients these are P, dP, dT, dS and the sums of each. Gradients of captured tensors are
    loops that add one element at a time. With `f64` all arithmetic, also in score regions, is done
    in f64: after attn-return-f64 the oracle of every numeric test. The inputs keep their types.

    Requires: room 1 `problem` to room 2 `grid`, without variants. Produces: room 3 `online` without
    attn ops. Fails when: an attention or its gradient still has variants, a gradient has a score
    region and no grad region, or an op is of room 3 or on buffers.
  }];
  let options = [Option<"f64", "f64", "bool", "false", "compute and return f64">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ReturnF64Pass : Pass<"attn-return-f64"> {
  let summary = "lets functions return attention's results unrounded, as f64";
  let description = [{
    The results of attention, and its gradients, that a function returns get element type f64, and
    so does the function's result. Those that gradients start from do too, so that the oracle rounds
    nowhere.

    Requires: room 1 `problem`. Produces: room 1 `problem`. Fails when: never; results used in other
    ways, and those of functions that are called, keep their types.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // ATTN_CONVERSION_ATTNTOLINALG_PASSES_TD
