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
    Every step of the online softmax becomes three passes over a tile that stays in the first two levels of cache: scores
    with rows in lanes, exponentials with rows in lanes, products with the columns of the value in lanes. No pass reduces
    across lanes, and keys and values of f32 are read where they lie. `linalg.fill` and `memref.copy` become vector loops
    on the way. Products that several steps of a module have, with and without a mask or in both forms of gradients, are private
    functions that these call.

    Requires: room 4 `buffers`. Produces: room 5 `vectors`: scf, vector, arith, math and memref ops, and calls of LLVM intrinsics
    for dot products of bf16. Fails when: the rows or keys of a step have no constant upper
    bound, or a block's buffers take more than 4 MiB.
  }];
  let options = [
    Option<"lanes", "lanes", "unsigned", "16", "f32 elements of a vector register: 16, 8 or 4">,
    Option<"bf16Dot", "bf16-dot", "bool", "false", "the processor multiplies pairs of bf16 (AVX512-BF16)">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_CONVERSION_ATTNTOVECTOR_PASSES_TD
