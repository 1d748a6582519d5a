//===- Passes.td - passes of rooms 5 and 6 -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TRANSFORMS_TILE_PASSES_TD
#define ATTN_TRANSFORMS_TILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PipelineStepsPass : Pass<"tile-pipeline-steps", "::mlir::ModuleOp"> {
  let summary = "delays the product with the values by one step";
  let description = [{
    A step multiplies its scores' weights with the values of the step before, right behind the product of its own scores: the
    two do not depend on each other, and the softmax between them can run while either is in flight. The first step must
    stand before the loops, or the first loop be certain to run by its bounds, as attn-prune-masked-tiles with
    `certain-first` puts them; other kernels stay as they are. A first loop does the product of the step before on its own,
    unless there is none.

    Requires: level `tile`. Produces: level `tile`. Fails when: never.
  }];
  let dependentDialects = ["::attn::tile::TileDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def PromoteOperandsPass : Pass<"tile-promote-operands", "::mlir::ModuleOp"> {
  let summary = "gives every operand of a matrix product a place in shared memory";
  let description = [{
    An operand that comes from global memory gets a shared tile and a copy into it. What does not change in a loop is copied
    once, before the loop; loops that read the same argument one after the other share one tile.

    Requires: level `tile`. Produces: level `placed` but for layouts. Fails when: the places exceed the shared memory of a
    block, where the error names both sizes, or a tile is no shape for shared memory.
  }];
  let options = [
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448", "shared memory of a block">,
    Option<"stages", "stages", "int64_t", "1", "copies of a tile that is loaded in a loop, for the budget">];
  let dependentDialects = ["::attn::tile::TileDialect"];
}

def AssignLayoutsPass : Pass<"tile-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "says which thread holds which element of every register tile";
  let description = [{
    The layout of a product is the accumulator's; what is computed from it elementwise has the same, rows have the row
    layout that belongs to it. A product whose left operand is in registers gets it in the operand layout: for 16-bit types
    the same map, so that nothing moves.

    Requires: level `tile` after tile-promote-operands. Produces: level `placed`. Fails when: rows are not 64 for each
    warpgroup, or a tile has no such layout.
  }];
  let dependentDialects = ["::attn::tile::TileDialect"];
}

def SpecializeWarpsPass : Pass<"tile-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "one warpgroup copies, the others compute";
  let description = [{
    The block gets one more warpgroup, the producer, which runs the control flow and the copies, asynchronously, and the
    consumers keep everything else. A tile that is copied in a loop becomes a ring of `stages` with a full and an empty
    barrier per stage: the producer waits for empty, the consumers for full. A tile copied once needs only a full barrier.
    Products become asynchronous and are waited for at once; tile-overlap-mma takes them apart. A kernel without copies stays
    as it is: all of its warpgroups compute.

    Requires: level `placed`. Produces: level `async`. Fails when: a ring cannot have the stages, the
    producer no warpgroup, or a scalar that decides about copies comes from a tile.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "2", "uses of a ring that may be in flight">];
  let dependentDialects = ["::attn::tile::TileDialect", "::mlir::scf::SCFDialect"];
}

def OverlapMmaPass : Pass<"tile-overlap-mma", "::mlir::ModuleOp"> {
  let summary = "waits for a matrix product as late as its results allow";
  let description = [{
    Every wait moves down to the first use of its product in the block, and the release of the operands' stages with it;
    products committed in between stay in flight. Weights narrowed to 16 bits while a product reads older ones from registers
    are narrowed after its wait.

    Requires: level `async` after tile-specialize-warps. Produces: level `async`. Fails when: never.
  }];
  let dependentDialects = ["::attn::tile::TileDialect"];
}

#endif // ATTN_TRANSFORMS_TILE_PASSES_TD
