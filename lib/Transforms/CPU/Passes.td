//===- Passes.td - passes of the CPU's way down -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TRANSFORMS_CPU_PASSES_TD
#define ATTN_TRANSFORMS_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def CPUReadViewsPass : Pass<"attn-cpu-read-views", "::mlir::ModuleOp"> {
  let summary = "tiles of views become rows of the tensors that they show";
  let description = [{
    A tile of `attn.ragged` becomes a slice of the rows, from where its sequence begins; tiles end where sequences do
    (attn-tile-to-grid). A tile of `attn.paged` becomes a slice of the pool where the size of a page is a multiple of
    block_n. Otherwise a loop copies its rows, gcd(P, block_n) at a time, since so many lie in one
    page. An entry of the table that is no page of the pool is taken for the nearest page.

    Requires: room 3 `online`. Produces: room 3 `online` without `attn.paged` and `attn.ragged`. Fails when:
    something but slices of rows of one head reads a view.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def CPUPlaceResultsPass : Pass<"attn-cpu-place-results", "::mlir::ModuleOp"> {
  let summary = "tiles of results go where attn.place has their rows";
  let description = [{
    A grid whose result `attn.place` takes inserts the rows of its tiles into the tensor of all rows, those that a
    sequence has.

    Requires: room 3 `online`. Produces: room 3 `online` without `attn.place`. Fails when: what is placed is no
    result of a grid, or is read elsewhere.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def CPUAppendDestinationsPass : Pass<"attn-cpu-append-destinations", "::mlir::ModuleOp"> {
  let summary = "results become buffers that the caller passes last";
  let description = [{
    A function that returns tensors gets one more argument for each, a buffer with strides of its
    own whose last dimension is contiguous, and materializes the result there. Bufferization then
    computes results where they belong.

    Requires: room 3 `online`. Produces: room 3 `online`, functions without tensor results.
    Fails when: a function is called from another.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect"];
}

def CPUBufferizePass : Pass<"attn-cpu-bufferize", "::mlir::ModuleOp"> {
  let summary = "tensors become buffers, in place";
  let description = [{
    One-shot bufferization across function boundaries. A tensor argument of rank 2 or more becomes a
    buffer of any strides but the last, which is 1; one of rank 1, or with the attribute
    `attn.strided`, may have any strides. Arguments are never written.

    Requires: room 3 `online`, functions without tensor results. Produces: room 4 `buffers`.
    Fails when: an op has no form on buffers; a constant has unknown extents; ways that meet bring buffers
    of different layouts.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect"];
}

def CPUFuseGradientsPass : Pass<"attn-cpu-fuse-gradients", "::mlir::ModuleOp"> {
  let summary = "gradients in five products where there are heads for all threads";
  let description = [{
    Two grids that attn-split-grad has marked as those of one gradient become a choice between two
    forms.

    * Fused: a block is a key head with all of its keys, whose tiles it takes in their order. Each
      step also adds to the gradient of the queries, in scratch of f32 that starts with zeros. The
      body of the grid over rows scales and rounds it.
    * Two passes: the two grids as they are.

    Sums have the same terms in the same order in both forms, so that results are the same bits. The
    program takes the fused form where `5 * ceil(heads / threads) * threads <= 7 * heads`, as
    `attn_cpu_threads()` tells.

    Requires: room 4 `buffers`, before attn-cpu-bound-buffers. Produces: room 4 `buffers`.
    Fails when: something else has the name of the pool's function.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def CPUBoundBuffersPass : Pass<"attn-cpu-bound-buffers", "::mlir::ModuleOp"> {
  let summary = "buffers of a block live on its stack";
  let description = [{
    An allocation inside an `scf.forall` becomes a stack buffer of the largest size it can have,
    seen at its size. Those outside of blocks are freed where the function returns. With `heap` (for
    the reference, whose buffers have no bound) those inside are freed where their block ends.

    Requires: room 4 `buffers`. Produces: room 4 `buffers`, no allocation inside a block unless
    `heap`, none that is not freed. Fails when: a size has no constant upper bound, unless `heap`.
  }];
  let options = [Option<"heap", "heap", "bool", "false", "leave buffers of a block on the heap">];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def CPUOutlineForallPass : Pass<"attn-cpu-outline-forall", "::mlir::ModuleOp"> {
  let summary = "the body of a parallel loop becomes a function for the thread pool";
  let description = [{
    Each `scf.forall` becomes a call of `attn_cpu_parallel_for(body, context, count)`. The body is a
    function of the context, a struct of the values that the loop used, and of one index. The last
    dimension, that of the rows, runs backwards: under a causal mask its last blocks are the
    longest, and long work should not start last.

    Requires: room 5 `vectors`. Produces: room 5 `vectors` without `scf.forall`. Fails when: a loop
    has results or uses a value that no struct can hold; something else has the name of the pool's
    function.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"];
}

def CPUExpandFloat8Pass : Pass<"attn-cpu-expand-float8", "::mlir::ModuleOp"> {
  let summary = "floats of 8 bits are widened by integer arithmetic";
  let description = [{
    No processor widens them, and LLVM knows them as bytes. The exponent and the mantissa move to their places in an
    f32, whose exponent is too small by a constant: a product makes up for it, and normalizes what is subnormal.

    Requires: nothing. Produces: the same without such
    conversions. Fails when: never.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def CPUExpandMathPass : Pass<"attn-cpu-expand-math", "::mlir::ModuleOp"> {
  let summary = "elementary functions become polynomials, bf16 becomes integer arithmetic";
  let description = [{
    Vectors have no library of elementary functions to call, and scalars get the same code.
    Conversions from and to bf16 become shifts, because not every processor and not every C library
    has them.

    Requires: room 5 `vectors`. Produces: room 5 `vectors` with fewer math ops. Fails when: never.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // ATTN_TRANSFORMS_CPU_PASSES_TD
