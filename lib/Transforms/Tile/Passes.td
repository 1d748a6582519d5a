//===- Passes.td - passes of rooms 5 and 6 -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TRANSFORMS_TILE_PASSES_TD
#define ATTN_TRANSFORMS_TILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitProductsPass : Pass<"tile-split-products", "::mlir::ModuleOp"> {
  let summary = "makes products of f32 from products of bf16";
  let description = [{
    A number of f32 is the sum of three of bf16, its parts: what rounds to it, what rounds to the
    rest, and the rest of that. A product of f32 becomes six products of parts into one sum. The
    other three are below the last bit of f32:

    ```mlir
    %s = tile.mma %q, %k : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    // becomes
    %0 = tile.mma %q1, %k3 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %1 = tile.mma %q2, %k2, %0 : ...
    %2 = tile.mma %q3, %k1, %1 : ...
    %3 = tile.mma %q1, %k2, %2 : ...
    %4 = tile.mma %q2, %k1, %3 : ...
    %s = tile.mma %q1, %k1, %4 : ...
    ```

    A tile in registers is split where it is. An argument of the kernel is split once by a kernel
    before, into three tensors of scratch that follow all arguments. Where rows of an argument are
    packed or those of sequences, rows of its parts are too.

    Requires: room 4 `tile`. Produces: room 4 `tile`, products of 8 or 16 bits. Fails when: a
    product of f32 reads pages.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::attn::tile::TileDialect",
                           "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

def FoldFactorsPass : Pass<"tile-fold-factors", "::mlir::ModuleOp"> {
  let summary = "folds factors of tiles into one another, and products into sums";
  let description = [{
    On tiles of f32, with a, b and c one number for the whole tile:

    | before | after |
    |---|---|
    | `x / a` | `x (1 / a)` |
    | `(x a) b` | `x (a b)` |
    | `(x a + y b) c` | `x (a c) + y (b c)` |

    One of the factors is a constant, and the products of constants are normal numbers. A number
    that only the launch knows takes factors from 2^-16 to 2, so that it neither overflows nor
    vanishes by them. Then `x y + z` and `z - x a` become multiply-adds.

    Requires: room 4 `tile`. Produces: room 4 `tile`. Fails when: never.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def AssignDelaysPass : Pass<"tile-assign-delays", "::mlir::ModuleOp"> {
  let summary = "says which ops of a loop run one turn late";
  let description = [{
    A product is one turn late, with the load of its rhs, if the turn computes its lhs and the loop
    only carries its sum. The first ops of the next turn, which are products too, do not depend on
    it, so that both run at the same time. A loop has one late product, since its lhs waits in
    registers. The chain of loops that the sum goes through must begin with a step on its own, or
    with a loop that is certain to run by its bounds: attn-prune-masked-tiles with `certain-first`
    makes them so.

    Requires: room 4 `tile`. Produces: a part of room 4 `tile`: delays. Fails when: never.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect"];
}

def PipelineStepsPass : Pass<"tile-pipeline-steps", "::mlir::ModuleOp"> {
  let summary = "runs ops as late as they say";
  let description = [{
    An op of an scf.for with `tile.delay = k` runs k turns later, together with the ops of that
    turn. Its operands are handed on, and the last late ops follow after the loop. Any ops may be
    late, in any number of loops, which may never run, and under conditions: a turn is then one in
    which the op would have run.

    Loops one after the other may carry the same results of the same late ops: then each goes on
    where the one before ends. Ops with a delay in front of a loop, which make the values that it
    carries, are a first step. In a turn, late ops stand after the products that do not need them,
    unless the first turn has none: then they are under a condition, on their own.

    Requires: a part of room 4 `tile`: delays. Produces: room 4 `tile`. Fails when:

    * an op that reads a late value is less late, or elsewhere;
    * late ops of a loop are in several blocks;
    * other ops access the memory of late ops, and one of both writes;
    * an op that is not in such a loop has a delay.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def PersistBlocksPass : Pass<"tile-persist-blocks", "::mlir::ModuleOp"> {
  let summary = "lets the blocks of kernels stay: each takes one block of the grid after the other";
  let description = [{
    A kernel that is to `stay` gets one block for each multiprocessor. Its body gets a loop around
    it over the blocks that the grid had, in a fixed order in which x is fastest. Where bounds
    depend on x, a block takes x from both ends in turns, as long as such pairs fill rounds of all
    blocks; the rest of each head comes last. With a `tail`, and bounds that depend on x, the grid
    has so many blocks more for each multiprocessor. They take the rest, and there is more of it.
    Scalars that are the same for all blocks stay in front.

    Requires: room 4 `tile`. Produces: room 4 `tile`. Fails when: the device decides the grid
    already; the blocks form clusters.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PromoteOperandsPass : Pass<"tile-promote-operands", "::mlir::ModuleOp"> {
  let summary = "gives every operand of a matrix product a place in shared memory";
  let description = [{
    An operand that comes from global memory gets a shared tile and a copy into it. An operand that
    does not change in a loop is copied before the loop, for all its readers there; loops that read
    the same argument one after the other share one tile. Products cannot read some computed
    operands from registers: a rhs, a transposed lhs, elements of 8 bits. Such an operand is stored
    to a shared tile where it is computed. Numbers of columns are copied to a row of shared memory
    where they are read.

    Requires: room 4 `tile`. Produces: a part of room 5 `placed`: places. Fails when: a tile is no
    shape for shared memory; K is no whole number of steps of 32 bytes, and only one operand is
    loaded with more columns.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def AssignLayoutsPass : Pass<"tile-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "says which thread holds which element of every register tile";
  let description = [{
    A product has the accumulator's layout. Values that are computed from it elementwise have the
    same layout, and rows have the row layout that belongs to it. A left operand in registers has
    the operand layout: for 16-bit types it is the same map, so that nothing moves.

    A tile of 16-bit elements and whole groups of 32 columns is stored in the chunked layout if its
    rows are contiguous in memory: one write of 16 bytes instead of four of 4. Such a tile is also
    loaded in the chunked layout if its rows are summed and it has no other use. One number of f32
    also fills rows of constant strides by 16 bytes. Where nothing is multiplied and rows are not 64
    for each warpgroup, lanes lie along the columns: tiles are `blocked`.

    Requires: a part of room 5 `placed`: places. Produces: room 5 `placed`. Fails when:

    * rows are not 64 for each warpgroup (or whole blocks, where nothing is multiplied);
    * a tile has no such layout, or a product has another one already;
    * a left operand in registers is transposed.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def KeepOperandsPass : Pass<"tile-keep-operands", "::mlir::ModuleOp"> {
  let summary = "keeps columns of the left operands of loops in registers";
  let description = [{
    A kernel may be told to `keep` columns. Products of loops whose left operand in shared memory
    stays the same, such as scores, which read the query, then take its first columns from
    registers. These are loaded once in front of the loops, so that each step reads less shared
    memory. Narrower operands are kept whole. Operands of 8 bits and transposed operands stay where
    they are.

    Requires: room 5 `placed`. Produces: room 5 `placed`. Fails when: never.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def DivideSumsPass : Pass<"tile-divide-sums", "::mlir::ModuleOp"> {
  let summary = "makes each of two sums the business of a role";
  let description = [{
    In a kernel with `tile.divided`, each loop has two sums that are too much for the registers of
    one thread. Each sum is given to a role of its own, with as many warpgroups as the kernel has; a
    producer comes on top. The role `giver` computes the values that both sums need, and stores one
    tile of 16 bits, from which the role `taker` goes on.

    Requires: a part of room 5 `placed`: all of it but for values that nobody reads. Produces: a
    part of room 6 `async`: roles, of the products and of the values that are handed over and
    stored. Fails when:

    * a loop has one sum or more than two;
    * neither sum is made of values that the other has, or they share something other than one tile
      of 16 bits;
    * a stored value comes from no sum;
    * the roles are more warpgroups than a block has.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def AssignRolesPass : Pass<"tile-assign-roles", "::mlir::ModuleOp"> {
  let summary = "says which warpgroups run which ops";
  let description = [{
    A kernel with places gets two roles: a producer of one more warpgroup, of which one thread
    copies, and the warpgroups of room 5 as consumers. A producer has few registers. It has more
    where it copies wide tiles and searches for the ends of its loops, or copies many wide tiles on
    a condition. Consumers share the rest. Where a table finds rows in pages that have no boxes, all
    threads of the producer copy, and it has more registers too.

    Every op that does more than compute values names its role in `tile.role`; values follow from
    where they are needed. Roles that the kernel lists in `tile.roles`, and roles that ops name,
    stay. An op that names no role goes to the first elected role if it copies, and to the first
    other role if not. Without an elected role, the first role gathers such rows.

    Requires: a part of room 5 `placed`: all of it but for values that nobody reads. Produces: a
    part of room 6 `async`: roles. Fails when: the kernel has ops of room 6; a copy goes to no place
    of the kernel; the roles are more than 8 warpgroups; an elected role has more to do than copies.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def MakeRingsPass : Pass<"tile-make-rings", "::mlir::ModuleOp"> {
  let summary = "orders the writer and the readers of a place by barriers";
  let description = [{
    The writer and the readers of a place follow from the memory effects of its users. A place that
    is filled in a loop becomes a ring of the kernel's `stages`, or of one stage where an inner loop
    reads it and more do not fit. A reader waits for `full` before its first read, and arrives on
    `empty` after its last, in the block of the fill.

    * Copies become asynchronous. Rows of pages without boxes are found before the stage is waited
      for, and gathered; each thread arrives when its rows land, and readers fence before products.
    * A register tile is stored to the stage by all threads of its role, who fence, meet and arrive.
      A place that only they read needs no ring.
    * Slots go through scf.for, scf.if and scf.while.
    * A place that is filled and never read is not filled.
    * A row of numbers takes the barriers of a tile that is filled together with it and has its last
      product after the row is read.
    * A `tile.clear_unread` becomes marks, a meeting, zeros, a fence and another meeting, between
      the wait for its stage and the product.
    * A loop that begins at a `tile.part_begin` gets a loop in front of it, over the turns that a
      warpgroup passes over. There the warpgroup waits for the stages that it would have read, and
      gives them back. Where threads meet in the loop, all begin at once.

    Requires: a part of room 6 `async`: roles. Produces: a part of room 6 `async`: one program,
    whose synchronous products are left. Fails when:

    * a place is read where no fill of its block or a block around it comes before;
    * a place is filled again before its last reader;
    * two roles, or copies and stores, fill one place;
    * a place has 2^20 bytes;
    * a row has no such tile, or the rows of its tile are gathered.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def OverlapMmaPass : Pass<"tile-overlap-mma", "::mlir::ModuleOp"> {
  let summary = "starts matrix products and waits for them as late as their results allow";
  let description = [{
    The wait comes before the first op of the block that needs the result, meets other threads, or
    fills the operands' stages again; the release of the stages moves with it. Products committed in
    between stay in flight. Weights narrowed to 16 bits while a product reads older ones from
    registers are narrowed after its wait.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`: no synchronous products.
    Fails when: K of a product is no whole number of steps of 32 bytes, or 8-bit operands do not
    have K contiguous.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def StageAdditionsPass : Pass<"tile-stage-additions", "::mlir::ModuleOp"> {
  let summary = "adds tiles to memory in bulk, through shared memory";
  let description = [{
    A register tile that a role adds to memory in a loop goes through a place of its own
    (`tile.add_async`), where shared memory has room for one: threads then go on while memory adds.
    At the end of the kernel the role waits until its places have been read. All additions of one
    role and type share a place. Tiles that cover memory in part stay as they are. So do tiles in
    fragments where no element depends on its position: threads that do little else add them
    themselves.

    Requires: a part of room 6 `async`: roles. Produces: a part of room 6 `async`. Fails when:
    nothing fails.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def SkipFactorsPass : Pass<"tile-skip-factors", "::mlir::ModuleOp"> {
  let summary = "lets warps pass over sums that none of their rows scales";
  let description = [{
    Where sums are scaled in the rows that a condition selects, and threads wait for products, each
    warp asks whether the condition holds for some row of its own, and else leaves its sums as they
    are. After a few steps of attention hardly any maximum rises.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`. Fails when: never.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def RunAheadPass : Pass<"tile-run-ahead", "::mlir::ModuleOp"> {
  let summary = "starts copies early, and lets the threads of a block without roles meet";
  let description = [{
    On a machine without roles all threads of a block copy, each its share, and compute. In a loop, a
    tile starts to come as soon as its place has been read: after the first meeting of the threads
    that follows its last reader, perhaps in the turn before its own. The threads wait for it before
    its first reader. They meet wherever one would access what another still writes or reads.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`: copies in shares, and
    meetings. Fails when: an op accesses a place in another way than by copies, stores, products and
    loads.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def OutlineRolesPass : Pass<"tile-outline-roles", "::mlir::ModuleOp"> {
  let summary = "gives each role a program of its own";
  let description = [{
    Every role of `tile.roles` gets the ops that name it and all that these need: values and the
    control flow around them, with the values that the control flow carries for the role. Scalars
    that depend on no role are computed once, in front. In a role that has a warpgroup for each
    part, a `tile.part_begin` becomes the number of each warpgroup; elsewhere it becomes the number
    of all rows.

    Requires: a part of room 6 `async`: roles. Produces: a part of room 6 `async`: a program for
    each role. Fails when:

    * a role needs a value that another computes, or an elected role needs a value that comes from a
      tile;
    * control flow around roles has no RegionBranchOpInterface, or regions of several blocks;
    * the roles are fewer than two, more than 8 warpgroups, or take more registers than a block has.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect"];
}

def OverlapLaunchesPass : Pass<"tile-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "lets a kernel start while the one before it ends";
  let description = [{
    Of the kernels of one way, which follow each other in the module with the same `plan.way`, all
    but the first become `programmatic`. Their blocks take multiprocessors as the blocks before
    leave them, and wait where they first touch memory.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`. Fails when: nothing
    fails.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def PlaceSumsPass : Pass<"tile-place-sums", "::mlir::ModuleOp"> {
  let summary = "gives the sums of products places in tensor memory";
  let description = [{
    On a machine with tensor memory, a product becomes a `tile.mma_tensor`. Its sum gets a place. One
    that loops and branches carry keeps its place: products add to it, rows are scaled where they
    are, and it is read at the end. Other sums are read at once; their columns also hold left
    operands from registers. A unit meets before a product, so that its first thread, which asks for it,
    comes after all accesses and waits of the unit. It waits for the product at a barrier of its own.

    Requires: a part of room 6 `async`: a program for each role. Produces: a part of room 6 `async`,
    without `tile.mma`. Fails when: a sum is read after another has taken its place; several roles
    multiply; the places are more columns than there are.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def AllocateSharedPass : Pass<"tile-allocate-shared", "::mlir::ModuleOp"> {
  let summary = "gives places and barriers their addresses in shared memory";
  let description = [{
    Places come first, in the kernel's order, at multiples of 1024 bytes; barriers follow. An offset
    that is there stays, and places and barriers without an offset come after it.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`, with an offset on every
    tile.alloc_shared, tile.barrier_init and tile.alloc_tensor. Fails when: a kernel needs more shared memory than a
    block of its machine has; the error names both sizes.
  }];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def CountRegistersPass : Pass<"tile-count-registers", "::mlir::ModuleOp"> {
  let summary = "says how many registers the tiles of each role take";
  let description = [{
    Analysis only. For each role of a kernel, a remark tells the registers of a thread that its
    tiles take at the worst place, and its budget. The rule chooses blocks by that number.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`, the same. Fails when:
    nothing fails.
  }];
}

#endif // ATTN_TRANSFORMS_TILE_PASSES_TD
