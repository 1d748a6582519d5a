//===- Passes.td - from the grid of room 3 to programs of blocks -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOTILE_PASSES_TD
#define ATTN_CONVERSION_ATTNTOTILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToTilePass : Pass<"convert-attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "the body of the grid becomes the program of one thread block, in synchronous steps";
  let description = [{
    A function whose results come from one scf.forall mapped to blocks becomes a kernel: tensor arguments and results become
    memrefs, results last; the forall becomes the grid. Tiles have constant shapes: rows past M and keys past N read as
    zero, the latter are masked, and nothing past M is written. attn.online_attention becomes products, reductions and
    elementwise arithmetic on register tiles; score and mask regions work on tiles of coordinates, and reads of captured
    tensors become gathers with coordinates clamped to M - 1 and N - 1.

    Requires: level `online`, f16 or bf16 attention. Produces: level `tile`. Fails when: a function's results do not come from
    one grid, elements are f32, a tile's size is none of the tensor cores', or an op has no form on tiles; each named in the error.
  }];
  let dependentDialects = [
    "::attn::tile::TileDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

#endif // ATTN_CONVERSION_ATTNTOTILE_PASSES_TD
