//===- TileTensorOps.td - operations on tensor memory: room 6 ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Some machines have memory of its own for the sums of products: lanes times columns of 32 bits
// (Machine::tensor). One thread of a unit asks for a product, and a barrier says when it is done.
//
//   %all = tile.alloc_tensor at 4096 : !tile.columns<512>        outside of roles
//   %s = tile.tensor_place %all at 0 : !tile.columns<512> -> !tile.tensor<256x128xf32>
//   tile.mma_tensor %q, %k to %s signal %done[%slot] {transpose_rhs}
//   tile.barrier_wait %done[%slot]
//   %scores = tile.load_tensor %s
//
//===----------------------------------------------------------------------------------------===//

#ifndef TILE_TENSOR_OPS_TD
#define TILE_TENSOR_OPS_TD

include "dialects/Tile/IR/TileAsyncOps.td"

//===----------------------------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------------------------===//

def Tile_AllocTensorOp : Tile_Op<"alloc_tensor"> {
  let summary = "takes columns of the multiprocessor's tensor memory";
  let description = [{
    The block waits until so many are free. Their first column is written to 4 bytes of shared
    memory at `offset`, which threads read after the next `tile.sync`. `tile-allocate-shared` decides
    the offset. Stands outside of roles, and a `tile.dealloc_tensor` follows.

    ```mlir
    %all = tile.alloc_tensor : !tile.columns<512>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Res<Tile_ColumnsType, "the columns", [MemAlloc]>:$result);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_DeallocTensorOp : Tile_Op<"dealloc_tensor"> {
  let summary = "gives columns back";
  let description = [{
    After all accesses of all threads: stands outside of roles, after a `tile.sync`.

    ```mlir
    tile.dealloc_tensor %all : !tile.columns<512>
    ```
  }];
  let arguments = (ins Arg<Tile_ColumnsType, "what was claimed", [MemFree]>:$columns);
  let assemblyFormat = "$columns attr-dict `:` qualified(type($columns))";
  let hasVerifier = 1;
}

def Tile_TensorPlaceOp : Tile_Op<"tensor_place", [Pure]> {
  let summary = "a place in tensor memory";
  let description = [{
    Units share the claimed columns evenly, and each has its rows from column `first` of its share
    on. Places may have columns in common, if no value of one is read after the other was written.

    ```mlir
    %s = tile.tensor_place %all at 128 : !tile.columns<512> -> !tile.tensor<256x128xf32>
    ```
  }];
  let arguments = (ins
    Arg<Tile_ColumnsType, "claimed columns">:$columns,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$first);
  let results = (outs Res<Tile_TensorPlaceType, "the place">:$result);
  let assemblyFormat = [{
    $columns `at` $first attr-dict `:` qualified(type($columns)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------------------------===//

def Tile_LoadTensorOp : Tile_Op<"load_tensor"> {
  let summary = "reads a tile of tensor memory into registers";
  let description = [{
    Each warp reads its own lanes.

    ```mlir
    %t = tile.load_tensor %s : !tile.tensor<128x64xf32> -> tensor<128x64xf32, #acc>
    ```
  }];
  let arguments = (ins Arg<Tile_TensorPlaceType, "a place", [MemRead]>:$source);
  let results = (outs Res<Tile_Tile, "the tile">:$result);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_StoreTensorOp : Tile_Op<"store_tensor"> {
  let summary = "writes a register tile to tensor memory";
  let description = [{
    Each warp writes its own lanes. A product reads the tile after the threads of its unit have met.

    ```mlir
    tile.store_tensor %p to %w : tensor<128x64xbf16, #acc>, !tile.tensor<128x64xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Tile, "the tile">:$value,
    Arg<Tile_TensorPlaceType, "a place", [MemWrite]>:$dest);
  let assemblyFormat = [{
    $value `to` $dest attr-dict `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

def Tile_ScaleTensorOp : Tile_Op<"scale_tensor"> {
  let summary = "multiplies the rows of a place by a number each";
  let description = [{
    Each warp scales its own rows, a few columns at a time.

    ```mlir
    tile.scale_tensor %o by %f : !tile.tensor<128x64xf32>, tensor<128xf32, #tile.row<#acc>>
    ```
  }];
  let arguments = (ins
    Arg<Tile_TensorPlaceType, "a place", [MemRead, MemWrite]>:$place,
    Arg<Tile_Tile, "a factor for each row">:$factors);
  let assemblyFormat = [{
    $place `by` $factors attr-dict `:` qualified(type($place)) `,` qualified(type($factors))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------===//

def Tile_MmaTensorOp : Tile_Op<"mma_tensor"> {
  let summary = "starts a matrix product whose sum is in tensor memory";
  let description = [{
    `sum = lhs * rhs`, or with `add` `sum += lhs * rhs`; transposition is that of `tile.mma`. The
    first thread of each unit asks for its rows, for all of its threads. When the product is done,
    and those before it, one arrival comes to the barrier. Until then nobody touches the sum, and
    nobody writes the operands. Products of a unit are done in order.

    ```mlir
    tile.mma_tensor %p, %v to %o signal %done[%slot] {add}
        : !tile.tensor<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128>,
          !tile.tensor<128x128xf32>, !tile.barrier<1>
    ```
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[Tile_SharedType, Tile_TensorPlaceType]>, "M x K", [MemRead]>:$lhs,
    Arg<Tile_SharedType, "K x N", [MemRead]>:$rhs,
    Arg<Tile_TensorPlaceType, "M x N f32", [MemRead, MemWrite]>:$sum,
    Arg<Tile_BarrierType, "an array of barriers">:$barrier,
    Arg<Optional<Tile_SlotType>, "which one; none: the only one">:$slot,
    UnitAttr:$add, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let assemblyFormat = [{
    $lhs `,` $rhs `to` $sum `signal` $barrier (`[` $slot^ `]`)? attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,` qualified(type($sum)) `,`
    qualified(type($barrier)) (`,` qualified(type($slot))^)?
  }];
  let hasVerifier = 1;
}

#endif // TILE_TENSOR_OPS_TD
