//===- TileAsyncOps.td - asynchronous operations: room 6 ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILE_ASYNC_OPS_TD
#define TILE_ASYNC_OPS_TD

include "dialects/Tile/IR/TileOps.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def Tile_SlotOp : Tile_Op<"slot", [Pure]> {
  let summary = "the first use of a ring";
  let description = [{
    Each role that fills or reads a ring counts its uses with a slot of its own, from this one on;
    a loop carries it. All roles start with the same slot, so that the i-th filling meets the i-th
    reading.

    ```mlir
    %first = tile.slot : !tile.slot<2>
    ```
  }];
  let arguments = (ins);
  let results = (outs Res<Tile_SlotType, "stage 0, phase 0">:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def Tile_NextOp : Tile_Op<"next", [Pure, SameOperandsAndResultType]> {
  let summary = "the use of a ring that follows";
  let description = [{
    Stage and phase move together: `(stage + 1, phase)`, and after the last stage `(0, 1 - phase)`.

    ```mlir
    %slot = tile.next %first : !tile.slot<2>
    ```
  }];
  let arguments = (ins Arg<Tile_SlotType, "a use">:$slot);
  let results = (outs
    Res<Tile_SlotType, "stage + 1; past the last, stage 0 in the other phase">:$result);
  let assemblyFormat = "$slot attr-dict `:` qualified(type($result))";
}

def Tile_UnitSlotOp : Tile_Op<"unit_slot", [Pure]> {
  let summary = "the first use of the unit's own barrier of an array";
  let description = [{
    An array of barriers that has one for each unit is no ring: a unit stays at its own.

    ```mlir
    %slot = tile.unit_slot : !tile.slot<2>
    ```
  }];
  let results = (outs Res<Tile_SlotType, "stage: the unit's number; phase 0">:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_NextPhaseOp : Tile_Op<"next_phase", [Pure, SameOperandsAndResultType]> {
  let summary = "the next use of the same barrier of an array";
  let description = [{
    ```mlir
    %next = tile.next_phase %slot : !tile.slot<2>
    ```
  }];
  let arguments = (ins Arg<Tile_SlotType, "a use">:$slot);
  let results = (outs Res<Tile_SlotType, "the same stage in the other phase">:$result);
  let assemblyFormat = "$slot attr-dict `:` qualified(type($result))";
}

def Tile_StageOp : Tile_Op<"stage", [Pure]> {
  let summary = "the shared tile a slot stands for";
  let description = [{
    ```mlir
    %k = tile.stage %keys[%slot] : !tile.shared<128x64xbf16, swizzle = 128, stages = 2>
    ```
  }];
  let arguments = (ins
    Arg<Tile_SharedType, "a ring">:$ring,
    Arg<Tile_SlotType, "a use of it">:$slot);
  let results = (outs Res<Tile_SharedType, "one stage">:$result);
  let assemblyFormat = [{
    $ring `[` $slot `]` attr-dict
    `:` custom<StageTypes>(type($ring), type($slot), type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// Ops on one barrier of an array: `%full[%slot]`, or `%ready` for an array of one in its first
/// phase.
class Tile_BarrierOp<string mnemonic, dag arguments_> : Tile_Op<mnemonic> {
  let arguments = !con((ins
    Arg<Tile_BarrierType, "an array of barriers">:$barrier,
    Arg<Optional<Tile_SlotType>,
        "which one and in which phase; none: the only one, in its first">:$slot), arguments_);
  let hasVerifier = 1;
}

def Tile_BarrierInitOp : Tile_Op<"barrier_init"> {
  let summary = "barriers that complete a phase after `arrivals` arrivals and all expected bytes";
  let description = [{
    The block sees them initialised after the next `tile.sync`. `offset` is decided by
    `tile-allocate-shared`.

    ```mlir
    %full = tile.barrier_init 1 : !tile.barrier<2>
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$arrivals,
    OptionalAttr<I64Attr>:$offset);
  let results = (outs Res<Tile_BarrierType, "one barrier per stage", [MemAlloc]>:$result);
  let assemblyFormat = "$arrivals (`at` $offset^)? attr-dict `:` qualified(type($result))";
}

def Tile_BarrierExpectOp : Tile_BarrierOp<"barrier_expect", (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$bytes)> {
  let summary = "arrives, and makes the phase wait for `bytes` bytes of asynchronous copies";
  let description = [{
    Once per role.

    ```mlir
    tile.barrier_expect %full[%slot] bytes 16384 : !tile.barrier<2>
    ```
  }];
  let assemblyFormat = [{
    $barrier (`[` $slot^ `]`)? `bytes` $bytes attr-dict
    `:` qualified(type($barrier)) custom<SlotType>(ref($slot), ref(type($barrier)), type($slot))
  }];
}

def Tile_BarrierArriveOp : Tile_BarrierOp<"barrier_arrive", (ins UnitAttr:$each)> {
  let summary = "arrives: once per unit of the role that multiplies, or each of its threads";
  let description = [{
    One thread arrives for its unit: a warpgroup, or a warp where warps multiply. The arrival covers
    shared memory that the unit's matrix products have read, if they were waited for. It also covers
    loads of threads before such a product, for which all warps of the unit come together. For later
    loads, a warpgroup needs a `tile.named_barrier` before the arrival. With `each` all threads of
    the role arrive, each for its own stores and loads.

    ```mlir
    tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
    tile.barrier_arrive %full[%slot] {each} : !tile.barrier<2>
    ```
  }];
  let assemblyFormat = [{
    $barrier (`[` $slot^ `]`)? attr-dict
    `:` qualified(type($barrier)) custom<SlotType>(ref($slot), ref(type($barrier)), type($slot))
  }];
}

def Tile_ArriveLandedOp : Tile_BarrierOp<"arrive_landed", (ins)> {
  let summary = "each thread of the role arrives when the rows that it has gathered are there";
  let description = [{
    The threads do not wait. Each arrives as soon as all pieces have landed that it has started to
    copy by `tile.gather_async` so far. Whoever waits for the barrier sees them; products do so after
    a `tile.fence async_shared` of their own threads.

    ```mlir
    tile.arrive_landed %full[%slot] : !tile.barrier<2>
    ```
  }];
  let assemblyFormat = [{
    $barrier (`[` $slot^ `]`)? attr-dict
    `:` qualified(type($barrier)) custom<SlotType>(ref($slot), ref(type($barrier)), type($slot))
  }];
}

def Tile_BarrierWaitOp : Tile_BarrierOp<"barrier_wait", (ins UnitAttr:$previous)> {
  let summary = "waits until the slot's phase of a barrier is complete";
  let description = [{
    With `previous`, waits for the phase before. The role that fills a ring waits in this way until
    its slot is released from the use before; in the first phase there is nothing to wait for.

    ```mlir
    tile.barrier_wait %full[%slot] : !tile.barrier<2>
    tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
    ```
  }];
  let assemblyFormat = [{
    (`previous` $previous^)? $barrier (`[` $slot^ `]`)? attr-dict
    `:` qualified(type($barrier)) custom<SlotType>(ref($slot), ref(type($barrier)), type($slot))
  }];
}

def Tile_SyncOp : Tile_Op<"sync"> {
  let summary = "all threads of the block meet";
  let description = [{
    Afterwards every thread sees the barriers that were initialised and the shared memory that
    threads wrote before. Stands outside of roles, where all threads pass it.

    ```mlir
    %full = tile.barrier_init 1 : !tile.barrier<2>
    tile.sync
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_NamedBarrierOp : Tile_Op<"named_barrier"> {
  let summary = "some threads of the block meet";
  let description = [{
    `sync` arrives and waits until `threads` threads have arrived on barrier `id` (1 to 15);
    `arrive` does not wait.

    ```mlir
    tile.named_barrier sync %mine threads 256
    tile.named_barrier arrive %other threads 256
    ```
  }];
  let arguments = (ins
    UnitAttr:$arrive,
    Arg<Index, "1 to 15, the same for all threads of a warp">:$id,
    I64Attr:$threads);
  let assemblyFormat = "custom<SyncOrArrive>($arrive) $id `threads` $threads attr-dict";
  let hasVerifier = 1;
}

def Tile_FenceOp : Tile_Op<"fence"> {
  let summary = "orders this thread's accesses";
  let description = [{
    `async_shared`: writes to shared memory before the fence are seen by matrix products and
    asynchronous copies after it (of other threads, once they met at a barrier).

    ```mlir
    tile.fence async_shared
    ```
  }];
  let arguments = (ins Tile_FenceKindAttr:$kind);
  let assemblyFormat = "$kind attr-dict";
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

def Tile_CopyAsyncOp : Tile_Op<"copy_async", [AttrSizedOperandSegments]> {
  let summary = "starts copying a box of global memory into a shared tile";
  let description = [{
    Once per role. Elements outside of the source become zero. The copy counts the tile's bytes,
    padding included, towards the barrier's phase.

    ```mlir
    tile.copy_async %k[%b, %h, %n, %zero] to %keys signal %full[%slot]
        : memref<?x?x?x64xbf16>, !tile.shared<128x64xbf16, swizzle = 128>, !tile.barrier<2>
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "a kernel argument", [MemRead]>:$source,
    Arg<Variadic<Index>, "position of the box's first element">:$offsets,
    Arg<Tile_SharedType, "one stage", [MemWrite]>:$dest,
    Arg<Tile_BarrierType, "counts the bytes that have landed">:$barrier,
    Arg<Optional<Tile_SlotType>, "which of the barriers">:$slot);
  let assemblyFormat = [{
    $source `[` $offsets `]` `to` $dest `signal` $barrier (`[` $slot^ `]`)? attr-dict
    `:` qualified(type($source)) `,` qualified(type($dest)) `,` qualified(type($barrier))
    custom<SlotType>(ref($slot), ref(type($barrier)), type($slot))
  }];
  let hasVerifier = 1;
}

def Tile_FindRowsOp : Tile_Op<"find_rows"> {
  let summary = "asks a table where the rows of a tile lie";
  let description = [{
    `source` is a pool of pages (`plan.paged`), and `offsets` is a position of its view. Row `i` of
    the result is row `n + i` of the view, where `n` is the position's row. A row past the view's
    end, or of a page that the pool does not have, lies nowhere. Of memory only the table is read.
    The table does not change while the kernel runs. So the op may stand long before the rows are
    gathered, which hides the time that the table takes.

    ```mlir
    %rows = tile.find_rows %k[%b, %h, %n, %zero] : memref<?x1x?x64xbf16> -> !tile.rows<80, warps = 4>
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "a paged argument of the kernel", [MemRead]>:$source,
    Arg<Variadic<Index>, "position of the tile's first element">:$offsets);
  let results = (outs Res<Tile_RowsType, "where the rows lie">:$result);
  let assemblyFormat = [{
    $source `[` $offsets `]` attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_GatherAsyncOp : Tile_Op<"gather_async"> {
  let summary = "starts copying rows, wherever each lies, into a shared tile";
  let description = [{
    All threads of the role take part: a thread copies pieces of 16 bytes. Elements outside of the
    memory become zero, and so do rows that lie nowhere; for them memory is not touched. Threads
    write shared memory here, so that products need a `tile.fence async_shared` to see the tile. The
    pieces of a thread are there when its next `tile.arrive_landed` arrives.

    ```mlir
    %rows = tile.find_rows %k[%b, %h, %n, %zero] : memref<?x1x?x64xbf16> -> !tile.rows<80, warps = 4>
    tile.gather_async %k[%b, %h, %n, %zero] at %rows to %keys
        : memref<?x1x?x64xbf16>, !tile.rows<80, warps = 4>, !tile.shared<80x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "a paged argument of the kernel", [MemRead]>:$source,
    Arg<Variadic<Index>, "position of the tile's first element">:$offsets,
    Arg<Tile_RowsType, "where the tile's rows lie">:$rows,
    Arg<Tile_SharedType, "one stage", [MemWrite]>:$dest);
  let assemblyFormat = [{
    $source `[` $offsets `]` `at` $rows `to` $dest attr-dict
    `:` qualified(type($source)) `,` qualified(type($rows)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

def Tile_CopyShareOp : Tile_Op<"copy_share"> {
  let summary = "starts copying this thread's share of a box of global memory into a shared tile";
  let description = [{
    All threads of the block take part, outside of roles. Elements outside of the source become zero.
    After a `tile.copy_wait` a thread sees its own share. It sees all of the tile after a `tile.sync`
    that follows the waits of all threads.

    ```mlir
    tile.copy_share %k[%b, %h, %n, %zero] to %keys
        : memref<?x?x?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "a kernel argument", [MemRead]>:$source,
    Arg<Variadic<Index>, "position of the box's first element">:$offsets,
    Arg<Tile_SharedType, "one stage", [MemWrite]>:$dest);
  let assemblyFormat = [{
    $source `[` $offsets `]` `to` $dest attr-dict
    `:` qualified(type($source)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

def Tile_CopyWaitOp : Tile_Op<"copy_wait"> {
  let summary = "waits until this thread's shares of all copies have landed";
  let description = [{
    ```mlir
    tile.copy_share %k[%b, %h, %n, %zero] to %keys
        : memref<?x?x?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
    tile.copy_wait
    tile.sync
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_StoreAsyncOp : Tile_Op<"store_async"> {
  let summary = "starts copying a shared tile into a box of global memory";
  let description = [{
    Once per role; elements outside of the destination are not written. The tile must not change
    before a `tile.store_wait` of the same role.

    ```mlir
    tile.store_async %s to %o[%b, %h, %m, %zero]
        : !tile.shared<128x64xbf16, swizzle = 128>, memref<?x?x?x64xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Tile_SharedType, "one stage", [MemRead]>:$source,
    Arg<AnyStridedMemRef, "a kernel argument", [MemWrite]>:$dest,
    Arg<Variadic<Index>, "position of the box's first element">:$offsets);
  let assemblyFormat = [{
    $source `to` $dest `[` $offsets `]` attr-dict
    `:` qualified(type($source)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

def Tile_StoreWaitOp : Tile_Op<"store_wait"> {
  let summary = "waits until the shared tiles of all stores and additions of this role have been read";
  let description = [{
    Waits for `tile.store_async` and `tile.add_async`. Afterwards threads may overwrite these tiles.
    The data need not have arrived in global memory; it has when the kernel ends.

    ```mlir
    tile.store_async %s to %o[%b, %h, %m, %zero]
        : !tile.shared<128x64xbf16, swizzle = 128>, memref<?x?x?x64xbf16>
    tile.store_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_AddAsyncOp : Tile_Op<"add_async"> {
  let summary = "starts adding a register tile to a box of global memory";
  let description = [{
    As `tile.store` with `add`: each element is added on its own and in any order. But the threads
    do not wait for memory. Each warp puts its rows into their part of `place` as soon as its last
    addition has been read from there, and memory adds them in bulk. No threads meet. Nobody else
    uses the place; a `tile.store_wait` of the same role waits until it has been read.

    ```mlir
    tile.add_async %sum to %dq[%b, %m, %zero] through %s
        : tensor<128x64xf32, #acc>, memref<?x?x64xf32>, !tile.shared<128x64xf32, swizzle = 128>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Tile, "f32">:$value,
    Arg<AnyStridedMemRef, "a kernel argument of f32", [MemWrite]>:$dest,
    Arg<Variadic<Index>, "position of the tile's first element">:$offsets,
    Arg<Tile_SharedType, "one stage", [MemRead, MemWrite]>:$place);
  let assemblyFormat = [{
    $value `to` $dest `[` $offsets `]` `through` $place attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest)) `,` qualified(type($place))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix products in flight
//===----------------------------------------------------------------------===//

def Tile_Accumulator : AnyTypeOf<[Tile_Tile, Tile_InFlightType],
    "register tile or accumulator in flight">;

def Tile_MmaAsyncOp : Tile_Op<"mma_async", [AttrSizedOperandSegments,
                                            DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a matrix product";
  let description = [{
    As `tile.mma`, but the result may only be read after a `tile.mma_wait`. `lhs` is in registers,
    in layout `#tile.operand_a`, or in shared memory; `rhs` is in shared memory. Operands must not
    change before the wait, those in registers included. All warpgroups of the role take part, each
    with its rows.

    ```mlir
    %s = tile.mma_async %q, %k {transpose_rhs}
        : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128>
        -> !tile.in_flight<tensor<128x96xf32, #acc>>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Operand, "M x K">:$lhs,
    Arg<Tile_SharedType, "K x N">:$rhs,
    Arg<Optional<Tile_Accumulator>, "M x N f32">:$acc,
    Arg<Optional<Tile_Tile>, "the first columns of lhs">:$kept,
    UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Res<Tile_InFlightType, "M x N f32">:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`,` $acc^)? (`kept` $kept^)? attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs))
    (`,` qualified(type($acc))^)? (`kept` qualified(type($kept))^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_MmaCommitOp : Tile_Op<"mma_commit"> {
  let summary = "makes a group of the products started since the last commit";
  let description = [{
    Groups complete in the order of their commits; `tile.mma_wait` counts them. A product that is in
    no group yet is not waited for.

    ```mlir
    %flying = tile.mma_async %q, %k {transpose_rhs}
        : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128>
        -> !tile.in_flight<tensor<128x96xf32, #acc>>
    tile.mma_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_MmaWaitOp : Tile_Op<"mma_wait"> {
  let summary = "waits until at most `pending` groups are in flight";
  let description = [{
    Accumulators whose group is complete come out readable. A register tile comes out unchanged, but
    no sooner than the wait is over: values that are computed from it cannot overwrite registers
    that a product still reads.

    ```mlir
    %s = tile.mma_wait 1, %flying : !tile.in_flight<tensor<128x96xf32, #acc>>
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<7>]>:$pending,
    Arg<Variadic<Tile_Accumulator>,
        "accumulators, and tiles that must not be used earlier">:$values);
  let results = (outs Res<Variadic<Tile_Tile>, "the values as register tiles">:$results);
  let assemblyFormat = [{
    $pending (`,` $values^ `:` custom<LandedTypes>(type($values), type($results)))? attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def Tile_SpecializeOp : Tile_Op<"specialize", [
    NoRegionArguments, RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "gives the warpgroups of the block different programs";
  let description = [{
    Role after role takes its `warpgroups`; together they are the block's. `registers` is the budget
    of a thread (a multiple of 8 from 24 to 256); the budgets of all warpgroups fit the register
    file. In a role marked `elected` one thread of the first warp runs the region and all others
    wait at its end.

    ```mlir
    tile.specialize
    role producer warpgroups 1 registers 24 elected {
      ...
    }
    role consumer warpgroups 2 registers 240 {
      ...
    }
    ```
  }];
  let arguments = (ins
    StrArrayAttr:$names,
    DenseI64ArrayAttr:$warpgroups,
    DenseI64ArrayAttr:$registers,
    DenseBoolArrayAttr:$elected);
  let regions = (region VariadicRegion<SizedRegion<1>>:$roles);
  let assemblyFormat = "custom<Roles>($names, $warpgroups, $registers, $elected, $roles) attr-dict";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"SpecializeOp">]> {
  let summary = "ends a role";
  let description = [{
    Has no operands and is not written: the closing brace of a role stands for it.

    ```mlir
    role producer warpgroups 1 registers 24 elected {
      tile.copy_async %k[%b, %h, %n, %zero] to %keys signal %full[%slot]
          : memref<?x?x?x64xbf16>, !tile.shared<128x64xbf16, swizzle = 128>, !tile.barrier<2>
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_WarpgroupOp : Tile_Op<"warpgroup"> {
  let summary = "the number of this warpgroup within its role, or within the block outside of roles";
  let description = [{
    From 0 on, the same for the 128 threads of a warpgroup. With it the warpgroups of one role take
    turns, for example at a `tile.named_barrier` for each.

    ```mlir
    %warpgroup = tile.warpgroup
    ```
  }];
  let results = (outs Res<Index, "the same for all threads of a warpgroup">:$result);
  let assemblyFormat = "attr-dict";
}

#endif // TILE_ASYNC_OPS_TD
