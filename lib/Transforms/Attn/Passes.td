//===- Passes.td - passes of rooms 1 to 3 -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TRANSFORMS_PASSES_TD
#define ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldScalesPass : Pass<"attn-fold-scales"> {
  let summary = "lets attention read elements of 8 bits, and its score function their scales";
  let description = [{
    Queries, keys and values that are attn.scaled become the elements of 8 bits that these show. Scales of queries and
    keys multiply the scores, in front of the score region; those of values are a factor of the weights (s15). A scale
    is read at the batch, head and row of an element, so that all that tiles, packs and masks scores knows it already.

    Requires: room 1 `problem`. Produces: room 1 `problem` without attn.scaled. Fails when: some of an op's queries,
    keys and values are scaled and others not, or a gradient is asked for.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandVariantsPass : Pass<"attn-expand-variants"> {
  let summary = "turns named variants (causal, window, alibi, ...) into score and mask regions";
  let description = [{
    After this pass nothing knows that a mask was spelled `causal`. Scores compose in the order of
    the list, masks are conjoined. Where there are `#attn.positions`, the arguments of all regions become
    positions in the whole.

    Requires: room 1 `problem`. Produces: room 1 `problem` without `variants`. Fails when: never.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def WidenIndicesPass : Pass<"attn-widen-indices"> {
  let summary = "computes in 64 bits what may not fit an index of 32";
  let description = [{
    Positions are below 2^28. Score and mask regions compute numbers from positions, constants and
    captured integers. By its range, such a number may exceed 32 bits: it is then computed in i64
    until it fits again. A number that is only compared, and only in sums with small numbers,
    becomes at most 2^30 - 2^16 in magnitude instead, which is on the same side of all of them. For
    targets where an index has 32 bits.

    Requires: room 1 `problem`. Produces: room 1 `problem`. Fails when: never.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def AppendGradientsPass : Pass<"attn-append-gradients", "::mlir::ModuleOp"> {
  let summary = "lets functions return the gradients of their attentions as well";
  let description = [{
    A function gets an argument for the gradient of each output and each log-sum-exp of attention
    that it returns. It returns, after its own results, the gradients of the attention's queries,
    keys, values, sink and tensors of floats that its score reads.

    Requires: room 1 `problem`. Produces: room 1 `problem`; functions that are called stay as they
    are. Fails when: a result of attention has a use other than being returned, its output has none,
    or a captured tensor is too wide to be an operand.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def DeriveScorePass : Pass<"attn-derive-score"> {
  let summary = "writes the adjoint of each score region next to it";
  let description = [{
    Every attn.attention_grad with a score region and without a grad region gets one, by reverse
    mode. The score is computed again from S. Then, from the last op to the first, the adjoint of
    each op is added to the adjoints of its operands. Only values that depend on the score S or on a
    tensor in `wrt` are followed. A read of such a tensor becomes an attn.contribute. Adjoints are
    in f32 or wider; at kinks they are those of PyTorch.

    Requires: room 1 `problem` without variants. Produces: room 1 `problem`, with a grad region next
    to every score region. Fails when: the score reaches its result through an op that has no
    derivative, such as arith.bitcast; a grad region that is written by hand is left as it is.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def SplitGradPass : Pass<"attn-split-grad"> {
  let summary = "turns gradients of attention into the passes that kernels make";
  let description = [{
    In the form `two-pass`, attn.attention_grad becomes up to three ops, each only where it is
    wanted:

    * attn.row_delta;
    * attn.attention_grad_query, for the gradients of queries and captured tensors;
    * attn.attention_grad_key_value, for the gradients of keys and values.

    Where a captured tensor has a gradient, attn.attention_grad_delta makes its delta from the delta
    of attn.row_delta. Every sum is then the sum of one block, so that results are the same in each
    run. The gradient of a sink is a sum over rows, by linalg.

    The form `fused` makes the same ops. Where the gradients of queries, keys and values are all
    wanted, it numbers the two passes of one op in `attn.fused`. Then convert-attn-to-tile may let
    blocks that own keys add their part of the queries' gradients, in any order, and
    attn-cpu-fuse-gradients may do so in the order of two passes.

    Requires: room 1 `problem` without variants, with a grad region next to every score region.
    Produces: room 1 `problem`. Fails when: the form is neither, or a gradient still has variants or
    a score region without a grad region.
  }];
  let options = [Option<"form", "form", "std::string", [{"two-pass"}], "two-pass or fused">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GeneralizeExtentsPass : Pass<"attn-generalize-extents", "::mlir::ModuleOp"> {
  let summary = "makes a function one for all extents";
  let description = [{
    Types of a function's tensors lose the extents that a call decides: batches, heads and lengths.
    The columns of queries, keys and values stay, and so do the keys of a page, for they make the
    kernel. A target whose kernels take whole tiles, whatever the lengths, starts with it: loops
    over static lengths would fold into shapes that it has no tiles for. Callers still pass what the
    source states.

    Requires: room 1 `problem`. Produces: room 1 `problem`; functions where other ops use a tensor
    stay as they are. Fails when: never.
  }];
}

def MakeWaysPass : Pass<"attn-make-ways", "::mlir::ModuleOp"> {
  let summary = "makes a copy of a function for each way of the rule that some of its calls take";
  let description = [{
    The machine's rule may have other kernels for some calls of an attention than for the rest: for
    few rows, for few keys, for short sequences. Then the function gets a copy before it, a *way*,
    with the conditions on calls as `plan.when`, a name as `plan.way`, and the schedule of the rule's
    row. Its view may differ too: in a way of packed rows, attention has the heads of keys, and P
    rows for each row of the query (attn.pack_heads); its regions find head and row in the packed
    row. Where the keys of packed rows are split into as many parts as fill the device (`fill`), a
    further way is for calls of at most one part. It does not split keys, and its bits are the same.

    A call takes the first way whose conditions it meets; the function itself is for the others.
    Where types say that all calls meet them, the function itself becomes the way; where types say
    that no call does, there is no copy. `way` says which ways there are:

    | `way` | ways |
    |---|---|
    | `auto` | all of the rule: packed rows, `few`, `narrow`, `short` |
    | `lengths` | `short` |
    | `short` | sizes for short sequences, for all calls |
    | `long` | none |
    | `few` | sizes for at most 128 rows with many keys, for all calls |
    | `narrow` | sizes for many rows with at most 80 keys or with 129 to 160, for all calls |
    | `groups` | none here: gradients have it, for all calls (attn-make-group-ways) |

    An attention with `attn.pack = P`, or any with `slots=P`, has one way of packed rows: for calls
    with at most 128 / P rows and groups of at most P heads. A schedule that is written at the op
    becomes the way's. Sizes that are said hold for all calls, so that there is no other way.

    Requires: room 1 `problem` without variants. Produces: room 1 `problem`; functions stay as they
    are where attention is not the only one, has a schedule, or has queries or keys that are no
    arguments. Rows are not packed where attention has something other than arguments and results.
    Fails when: `way` or `slots` is none of its words.
  }];
  let options = [
    Option<"way", "way", "std::string", [{"lengths"}],
      "which ways there are: auto, lengths, short, long, few, narrow or groups">,
    Option<"slots", "slots", "int64_t", "0",
      "slots for the heads of a group: 2, 4, 8, 16, 32 or 64; 0 is the rule's">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect", "::attn::plan::PlanDialect"];
}

def SetTargetPass : Pass<"attn-set-target", "::mlir::ModuleOp"> {
  let summary = "names the machine that a program is for";
  let description = [{
    The module gets `plan.target`, from which passes read the machine. For `cuda` it is the one that
    the module names, or else the default.

    Requires: room 1 `problem`. Produces: room 1 `problem`, with `plan.target` on the module.
    Fails when: lib/Machine has no machine of that name, or the module names another one.
  }];
  let options = [
    Option<"target", "target", "std::string", [{"cuda"}], "cuda, or the name of a machine">];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def SetSchedulePass : Pass<"attn-set-schedule", "::mlir::ModuleOp"> {
  let summary = "names the target and chooses sizes for it";
  let description = [{
    Every attention without a schedule gets `attn.schedule`, an `#attn.schedule`, and so does every
    gradient in two passes. A gradient for which the machine has no block loses `attn.fused`. All of
    this is policy: results never depend on it. A remark names the row of the rule's tables that
    decided.

    Each word of the schedule is an option too, with dashes (`block-m=64 stay=true`). It holds
    whatever the rule chooses; `auto` leaves the word to the rule.

    For the target cuda, the module gets `plan.target`, unless it has one. Later rooms read the
    numbers of the machine and of the schedule: they have no defaults of their own.

    Requires: room 1 `problem`. Produces: room 1 `problem`, every such op with a schedule.
    Fails when:

    * the target is unknown;
    * a word is none that `#attn.schedule` may have;
    * the machine has no such block of an attention, given or chosen: its head dimensions, rows,
      keys, stages or consumers are none of the machine's sizes, or it needs more shared memory or
      registers. The error names the nearest block;
    * `search` is below 0; or it is above 0, and models say that given sizes spill or wait for
      memory in calls of so many rows.
  }];
  let options = [
    Option<"target", "target", "std::string", [{"cpu"}], "cpu or cuda">,
    Option<"lanes", "lanes", "int64_t", "16", "f32 lanes of the CPU's vectors: 4, 8 or 16">,
    Option<"bf16Dot", "bf16-dot", "bool", "false", "the CPU multiplies pairs of bf16">,
    Option<"search", "search", "int64_t", "0",
      "rows of the calls that a search times on a GPU: sizes of which models say that they "
      "spill or wait for memory are refused; 0: none are">];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def MakeGroupWaysPass : Pass<"attn-make-group-ways", "::mlir::ModuleOp"> {
  let summary = "makes a copy of a function of gradients for calls of few blocks and many query heads";
  let description = [{
    Blocks of gradients own keys, and visit all query heads that share them. A function gets a way
    `groups` for calls with two query heads or more for each key head, and few blocks of keys: under
    a mask up to three or four for each multiprocessor, otherwise fewer than there are
    multiprocessors. Its passes over keys have the same schedule, with `splits` and `fill`:
    attn-split-groups splits the query heads. With `all-calls` the function
    itself becomes that way, for all calls.

    Requires: room 1 `problem` with schedules. Produces: room 1 `problem`. Functions stay as they
    are where queries or keys are no arguments of 16 bits, tiles are listed, or types say that each
    query head has keys of its own. So do those that leave no registers for parts: arguments of any
    strides, scores that read a tensor at each place, dropout of wide heads. Fails when: never.
  }];
  let options = [
    Option<"allCalls", "all-calls", "bool", "false", "whether the way is for all calls">];
  let dependentDialects = ["::attn::plan::PlanDialect"];
}

def TileToGridPass : Pass<"attn-tile-to-grid"> {
  let summary = "tiles attention over B, H and M into one grid of blocks";
  let description = [{
    Each block gets one batch, one query head with its key/value head, and at most block_m rows. The
    positions that score and mask regions see stay global. Blocks of attn.row_delta and
    attn.attention_grad_query are cut in the same way. Blocks of attn.attention_grad_key_value get
    one key head with the query heads of its group, and at most block_n keys. On a GPU, the sums for
    sinks become grids over 64 of the elements that they keep. Gradients of captured tensors stay
    whole. Rows and keys of attn.ragged end where the block's sequence does, and a block without
    rows has no keys.

    Requires: room 1 `problem` without variants, a schedule on each of these ops. Produces: room 2
    `grid`. Fails when: an attention has no schedule, still has variants or has a static extent of
    0, a sum has one, or a block has one row of sequences.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def OnlineSoftmaxPass : Pass<"attn-online-softmax"> {
  let summary = "makes the softmax online and in base 2";
  let description = [{
    attn.attention becomes an initial state, one attn.online_attention over all keys, and
    attn.normalize. This is the only place where the base of the exponential and the folding of the
    scale are decided: without a score region log2(e) joins the scale, with one it multiplies the
    region's result.

    Gradients in two passes become f32 sums of zeros, one step over all keys or over all rows of
    each head of a group, and attn.grad_end. Their scores stay natural: log2(e) is a part of the
    steps. The gradient of a captured tensor becomes a grid of blocks that own parts of it. A part
    is at one batch, at one head, or at the rows of a tile, where every read has these as indices.
    Loops run over the other indices, with attn.grad_captured_step.

    Requires: room 2 `grid`. Produces: room 3 `online`. Fails when: results are f64, which only the
    reference computes; a pass has the gradient of a captured tensor and another one.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def SplitKVPass : Pass<"attn-split-kv"> {
  let summary = "spreads the keys of a block over several blocks and merges their partial results";
  let description = [{
    For schedules with splits > 1, or with a fixed_split. The grid gets a fourth dimension: each
    block absorbs its part of the keys and writes a normalized f32 partial result with its
    log-sum-exp. attn.merge joins the parts. It is tiled over a grid of its own, on GPUs in blocks of
    as few rows as lanes along the columns leave. A sink belongs to the first part. A CPU splits no
    keys whose results attn.place takes, unless the split is fixed.

    Parts share out what the mask keeps: with [begin, end) of MaskTiles for all rows of the block,

    ```
    tiles  = ceil((end - begin) / block_n)
    size   = max(least, ceil(tiles / parts)) * block_n
    part p = [begin + p * size, begin + (p + 1) * size), cut at end
    ```

    Parts that fill the device have at least a few tiles, or as many as their share of all keys.
    A part without keys stores -inf as its log-sum-exp. With a fixed split F, part p is
    [p * F, (p + 1) * F), whatever the mask keeps, and there are as many as all keys fill.

    With `balance` sequences get parts by their lengths, where parts fill the device and a mask
    bounds the keys of each sequence for all heads alike. Grids in front count the keys of each
    sequence and deal parts to slots (attn.count_parts), the longest to the first. The grid is over
    slots, heads and tiles, and a merge joins the slots of its sequence.

    Requires: room 3 `online` whose loops over keys are still to be made. Produces: room 3 `online`.
    Fails when: a fixed split is asked for results that do not leave the grid directly. Other
    attention without keys, or whose results do not leave the grid directly, is
    left alone, with a remark.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def SplitGroupsPass : Pass<"attn-split-groups", "::mlir::ModuleOp"> {
  let summary = "spreads the query heads of a group over several blocks that own the same keys";
  let description = [{
    For gradients of keys and values with splits > 1, on a GPU. The grid gets a fourth dimension:
    each block visits its part of the query heads that share its keys, and stores f32 sums. A
    further grid for each result adds the parts in ascending order and rounds. With
    `parts` as the device chooses them (attn.count_parts), up to splits:

    ```
    size   = ceil(heads / parts)
    part p = heads [p * size, (p + 1) * size), cut at the last
    ```

    Under a mask the first keys have the most work, and blocks of all heads and batches start with
    them: the mapping of the grid says so.

    Requires: room 3 `online` whose loops over rows are still to be made. Produces: room 3 `online`.
    Fails when: never; gradients whose results do not leave the grid directly are left alone, with a
    remark.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def TileKVLoopPass : Pass<"attn-tile-kv-loop"> {
  let summary = "makes the loop over key tiles, or over tiles of rows";
  let description = [{
    The loop carries exactly the running state, (acc, row_max, row_sum) or sums of gradients; its
    last tile may be shorter than block_n. Steps whose state belongs to keys absorb tiles of block_m
    rows instead.

    Requires: room 3 `online`, a schedule on every step. Produces: room 3 `online`, every step
    absorbs at most block_n keys, or block_m rows. Fails when: an op has no schedule.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ListTilesPass : Pass<"attn-list-tiles"> {
  let summary = "lets blocks visit the key tiles of a list that grids before them make";
  let description = [{
    For schedules with `lists`, two grids are added over the batches and heads that the mask reads.
    A grid over tiles of rows and tiles of keys evaluates the mask (attn.tile_status). A grid over
    tiles of rows lists the tiles that the mask keeps (attn.list_tiles). A block of the attention
    then takes the first tile of its list, which alone may be shorter than block_n. One loop visits
    the other tiles that the mask cuts, and another, without a mask, the tiles that are kept whole.
    The mask is not evaluated on tiles that MaskTiles knows to keep nothing.

    A mask may read a tensor at quotients of the positions that tiles divide: keep[m / 128, n / 128].
    Then each tile has one such element, and where MaskTiles knows what else the mask keeps, the
    first grid computes the status of tiles from it: a block does so for 16 tiles of a list. Such a
    step has the mask that is left when the element is known, or none. Steps of gradients have lists
    of this kind, of keys for blocks of rows and of rows for blocks of keys. A tile of these may have
    up to 8 elements, one for each part of it: then it has the mask unless all parts are kept.

    Requires: room 3 `online` whose loops over tiles are not pruned yet. Produces: room 3 `online`.
    Fails when: never; a step without a mask, or in no grid over (B, H, tiles) and loop made by
    attn-tile-kv-loop, stays as it is, with a remark. So does a step of a gradient if one element a
    tile does not tell its status.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PruneMaskedTilesPass : Pass<"attn-prune-masked-tiles"> {
  let summary = "visits no key tile that the mask drops, and masks none that it keeps";
  let description = [{
    Each loop over key tiles is split into at most three, with bounds in closed form from the
    analysis MaskTiles:

    * tiles that are partly masked on the left;
    * tiles that are kept whole: they have a constant size and no mask region;
    * tiles that are partly masked (or shorter than block_n) on the right.

    Tiles that keep nothing are in none of them. A mask that the analysis cannot decide is applied
    everywhere, unless attn.assume states the facts that it needs. Loops over tiles of rows are
    split in the same way, by the mask of the keys of the block. Without `certain-first`, tiles of
    which the mask reads one element (attn-list-tiles) are passed over by it.

    With `certain-first` the first step is certain to run, if there is any tile: targets that
    overlap a tile with the next need a first step. Partial tiles come first, those on the right and
    then those on the left, in a loop whose bounds show that it runs. Full tiles follow. The last
    tile comes first, outside of the loops, in three cases: there is no mask, the mask cannot be
    decided, or it keeps several intervals of keys. It also does so where the score or the mask
    reads tensors. There one loop visits all other tiles: its mask is `isFull or mask`, where isFull
    is a scalar of the tile.

    Such targets multiply whole tiles. So partial tiles end with the last key that a row of the
    block keeps: keys after it may hold anything. Partial tiles of masks that leave no holes begin
    with the first key that a row of the head keeps, and `attn.kept_keys` says so. It also says so
    of masks that let each row keep its own key, in a call with as many rows as keys.

    A schedule may let consumers begin `apart`. Where bounds need no search, partial tiles on the
    right then go from the last to the first, and their loop begins at an `attn.part_begin`: for
    each consumer with the last tile that its rows need.

    Requires: room 3 `online`; a step outside of a loop over key tiles stays as it is. Produces:
    room 3 `online`. Fails when: never.
  }];
  let options = [
    Option<"certainFirst", "certain-first", "bool", "false",
      "begin with a step that is certain to run">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def HoistSearchesPass : Pass<"attn-hoist-searches"> {
  let summary = "searches for the ends of loops in a grid before the blocks that have them";
  let description = [{
    A block may know the ends of its loops only from a search of a tensor (documents that are
    sorted). It would search before its first tile, in each role and once more in each head.
    Instead, a grid over (B, H, M tiles) gets a smaller grid in front. The smaller grid runs over
    the batches and heads that the searches (scf.while) depend on, the tiles, and the searches: a
    block runs one search. The blocks of the attention read the results.

    Requires: room 3 `online`. Produces: room 3 `online`. Fails when: never; a search stays where it
    is, with a remark, if it depends on values that only its block computes, under a branch, or in
    another grid.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif // ATTN_TRANSFORMS_PASSES_TD
