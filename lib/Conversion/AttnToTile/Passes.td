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
    A function whose results come from scf.foralls mapped to blocks becomes a kernel for each of
    them, in their order. Tensor arguments and results become memrefs, results last; the forall
    becomes the grid. The only kernel of a function has its name. Other kernels:

    | name | work |
    |---|---|
    | `<name>_split` | absorbs a part of the keys |
    | `<name>_merge` | joins the parts |
    | `<name>_status`, `<name>_lists` | say which tiles a mask keeps |
    | `<name>_zeros`, `<name>_captured` | the gradient of a captured tensor |

    Results of a grid that a later grid reads are scratch: more memrefs, after the results, with
    their sizes in `tile.scratch` where they are filled. Parts share the grid's x with the tiles of
    rows.

    Tiles have constant shapes. Rows past M and keys past N read as zero, keys past N are masked,
    and nothing past M is written. A tile of fewer keys that has a mask ends with its own keys and
    begins with keys of other steps, which are masked: memory after its keys may hold anything.

    attn.online_attention becomes products, reductions and elementwise arithmetic on register tiles.
    Score and mask regions work on tiles of coordinates. Reads of captured tensors become gathers
    with coordinates clamped to M - 1 and to the step's keys. attn.merge becomes a loop over the
    parts, several a turn, whose loads come first.

    The gradient of a captured tensor starts with zeros and is added with tile.scatter_add, in any
    order. The blocks of `<name>_captured` are those of the grid, and the turns of the loops around
    the loop over keys. Addends that do not depend on the key are first summed along rows; addends
    that depend on the distance alone, along diagonals.

    Requires: room 3 `online`, f16 or bf16 attention. Produces: room 4 `tile`. The error says which.
    Fails when:

    * a function's results do not each come from a grid over (B, H, M tiles) or (parts or tiles of
      keys, B, H, M tiles);
    * scratch does not start as tensor.empty of sizes of arguments;
    * elements are f32;
    * the machine has no block of the schedule's sizes;
    * an op has no form on tiles.
  }];
  let dependentDialects = [
    "::attn::tile::TileDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

#endif // ATTN_CONVERSION_ATTNTOTILE_PASSES_TD
