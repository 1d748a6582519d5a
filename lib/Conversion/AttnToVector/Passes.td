//===- Passes.td - from attention on buffers to vectors -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOVECTOR_PASSES_TD
#define ATTN_CONVERSION_ATTNTOVECTOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToVectorPass : Pass<"convert-attn-to-vector", "::mlir::ModuleOp"> {
  let summary = "lowers attn ops on buffers to loops over vectors";
  let description = [{
    Every step of the online softmax becomes three passes over a tile that stays in the first two
    levels of cache. Scores and exponentials have rows in lanes, and products have the columns of
    the value in lanes. No pass reduces across lanes, and keys and values of f32 are read where they
    lie. `linalg.fill` and `memref.copy` become vector loops on the way. Several steps of a module
    may have the same products: with and without a mask, or in both forms of gradients. Such
    products are private functions that the steps call.

    Requires: room 4 `buffers`. Produces: room 5 `vectors`: scf, vector, arith, math and memref ops,
    and calls of LLVM intrinsics for dot products of bf16.

    Fails when: the rows or keys of a step have no constant upper bound, or a block's buffers take
    more than 4 MiB.
  }];
  let options = [
    Option<"lanes", "lanes", "unsigned", "16", "f32 elements of a vector register: 16, 8 or 4">,
    Option<"bf16Dot", "bf16-dot", "bool", "false",
      "the processor multiplies pairs of bf16 (AVX512-BF16)">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_CONVERSION_ATTNTOVECTOR_PASSES_TD
