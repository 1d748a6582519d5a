//===- TileOps.td - synchronous operations: rooms 4 and 5 ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILE_OPS_TD
#define TILE_OPS_TD

include "dialects/Tile/IR/TileTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

/// Register tiles have static shapes without an extent of 0; a matrix is rank 2, a row
/// vector rank 1.
def Tile_Tile : Type<
    And<[StaticShapeTensorOf<[AnyFloat, AnyInteger, Index]>.predicate,
         CPred<"!::llvm::is_contained(::llvm::cast<::mlir::ShapedType>($_self).getShape(), 0)">]>,
    "a tile (a tensor of static extents above 0 of floats, integers or indices)",
    "::mlir::RankedTensorType">;

/// On-chip memory that matrix products read.
def Tile_Operand : AnyTypeOf<[Tile_Tile, Tile_SharedType], "register or shared tile">;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load"> {
  let summary = "reads a tile from global memory";
  let description = [{
    The tile covers the last dimensions of `source` from `offsets` on; elements outside of it read
    as zero.

    ```mlir
    %t = tile.load %q[%b, %h, %m, %zero] : memref<?x?x?x64xbf16> -> tensor<128x64xbf16>
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "a kernel argument", [MemRead]>:$source,
    Arg<Variadic<Index>, "position of the tile's first element">:$offsets);
  let results = (outs Res<Tile_Tile, "the tile">:$result);
  let assemblyFormat = [{
    $source `[` $offsets `]` attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_LoadSharedOp : Tile_Op<"load_shared"> {
  let summary = "reads a tile of shared memory into registers";
  let description = [{
    The inverse of a `tile.store` to shared memory: elements are those of `source`, wherever they
    lie there. A narrower tile has its first columns.

    ```mlir
    %t = tile.load_shared %s
        : !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #acc>
    ```
  }];
  let arguments = (ins Arg<Tile_SharedType, "a shared tile", [MemRead]>:$source);
  let results = (outs Res<Tile_Tile, "the tile">:$result);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_LoadColumnsOp : Tile_Op<"load_columns"> {
  let summary = "reads one number for each column of a tile";
  let description = [{
    `result[i, j] = source[offsets + j]` along the last dimension of global memory, where elements
    outside of it read as zero. In shared memory it is `source[j]` of a row, which is at least as
    long as the tile is wide.

    ```mlir
    %t = tile.load_columns %lse[%b, %h, %m] : memref<?x?x?xf32> -> tensor<128x64xf32>
    %u = tile.load_columns %row : !tile.shared<64xf32> -> tensor<128x64xf32, #acc>
    ```
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[AnyStridedMemRef, Tile_SharedType]>, "a kernel argument or a shared row",
        [MemRead]>:$source,
    Arg<Variadic<Index>, "position of the first column's number">:$offsets);
  let results = (outs Res<Tile_Tile, "f32">:$result);
  let assemblyFormat = [{
    $source (`[` $offsets^ `]`)? attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather"> {
  let summary = "reads one element of global memory per element of a tile";
  let description = [{
    `result[i] = source[indices[i]...]`; each index is a scalar or a tile of the result's shape.
    Every index must be in bounds.

    ```mlir
    %ids = tile.gather %ids_k[%b, %columns]
        : memref<?x?xi32>, index, tensor<128x64xindex> -> tensor<128x64xi32>
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "a kernel argument", [MemRead]>:$source,
    Arg<Variadic<AnyTypeOf<[Index, Tile_Tile]>>, "one per dimension of the source">:$indices);
  let results = (outs Res<Tile_Tile, "the elements">:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` attr-dict
    `:` qualified(type($source)) `,` qualified(type($indices)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store"> {
  let summary = "writes a register tile to global or shared memory";
  let description = [{
    To global memory, the tile covers the last dimensions from `offsets` on; elements outside of the
    destination are not written. With `add` they are added to the destination, each on its own and
    in any order, also among blocks. To shared memory the shapes agree and there are no
    offsets; matrix products and asynchronous copies see the data after `tile.fence async_shared`
    and a barrier.

    ```mlir
    tile.store %t to %o[%b, %h, %m, %zero] : tensor<128x64xbf16, #acc>, memref<?x?x?x64xbf16>
    tile.store %sum to %dq[%m, %zero] {add} : tensor<128x64xf32, #acc>, memref<?x64xf32>
    tile.store %t to %s : tensor<128x64xbf16, #acc>, !tile.shared<128x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Tile, "the tile">:$value,
    Arg<AnyTypeOf<[AnyStridedMemRef, Tile_SharedType]>, "a kernel argument or a shared tile",
        [MemWrite]>:$dest,
    Arg<Variadic<Index>, "position of the tile's first element">:$offsets,
    UnitAttr:$add);
  let assemblyFormat = [{
    $value `to` $dest (`[` $offsets^ `]`)? attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

def Tile_ScatterAddOp : Tile_Op<"scatter_add", [
    TypesMatchWith<"keep is a tile of i1 like the value", "value", "keep",
                   "::llvm::cast<::mlir::RankedTensorType>($_self).clone("
                   "::mlir::IntegerType::get($_self.getContext(), 1))">]> {
  let summary = "adds each element of a tile to an element of global memory";
  let description = [{
    `dest[indices[i]...] += value[i]` for every `i` where `keep[i]`, each on its own and in any
    order, also among blocks; elements may share a place. Each index is a scalar or a tile of the
    value's shape. Where an element is kept, every index must be in bounds; an element that is not
    kept is not read and may be anything.

    ```mlir
    tile.scatter_add %ds to %table[%h, %buckets] where %keep
        : tensor<128x64xf32>, memref<?x?xf32>, index, tensor<128x64xindex>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Tile, "f32">:$value,
    Arg<AnyStridedMemRef, "a kernel argument of f32", [MemWrite]>:$dest,
    Arg<Variadic<AnyTypeOf<[Index, Tile_Tile]>>, "one per dimension of the destination">:$indices,
    Arg<Tile_Tile, "i1, of the value's shape">:$keep);
  let assemblyFormat = [{
    $value `to` $dest `[` $indices `]` `where` $keep attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest)) (`,` qualified(type($indices))^)?
  }];
  let hasVerifier = 1;
}

def Tile_AllocSharedOp : Tile_Op<"alloc_shared"> {
  let summary = "a place in shared memory";
  let description = [{
    Lives as long as the block. `offset`, in bytes and a multiple of 1024, is decided by
    `tile-allocate-shared`.

    ```mlir
    %keys = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128, stages = 2>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Res<Tile_SharedType, "the tile or ring", [MemAlloc]>:$result);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_CopyOp : Tile_Op<"copy"> {
  let summary = "copies a box of global memory into a shared tile and waits for it";
  let description = [{
    Elements outside of the source become zero. All threads of the role take part; afterwards all of
    them, and matrix products, see the data.

    ```mlir
    tile.copy %k[%b, %h, %n, %zero] to %keys
        : memref<?x?x?x64xbf16>, !tile.shared<128x64xbf16, swizzle = 128>
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

def Tile_TransposeOp : Tile_Op<"transpose"> {
  let summary = "a shared tile of 8-bit elements with rows as columns, in the order of quads";
  let description = [{
    `dest[n, m] = source[m, n]`. Products read operands of 8 bits with the summed dimension along the rows, and values
    lie the other way. The threads of one warpgroup read pairs of elements as if they were one of 16 bits, which the
    hardware transposes, and take the pairs apart.

    ```mlir
    tile.transpose %v to %t
        : !tile.shared<128x64xf8E4M3FN, swizzle = 64>, !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
    ```
  }];
  let arguments = (ins
    Arg<Tile_SharedType, "one stage, M x N", [MemRead]>:$source,
    Arg<Tile_SharedType, "one stage, N x M in quads", [MemWrite]>:$dest);
  let assemblyFormat = [{
    $source `to` $dest attr-dict `:` qualified(type($source)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

def Tile_MmaOp : Tile_Op<"mma", [AttrSizedOperandSegments,
                                DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "matrix product, added to an accumulator";
  let description = [{
    `result = lhs * rhs + acc` in f32 (without `acc`: `lhs * rhs`), with lhs M x K and rhs K x N;
    `transpose_lhs` and `transpose_rhs` say that the operand is stored the other way round (K x M, N
    x K). `kept` are the first columns of an lhs in shared memory, which registers have already.

    ```mlir
    %s = tile.mma %q, %k {transpose_rhs}
        : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    %o = tile.mma %p, %v, %acc
        : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Operand, "M x K">:$lhs,
    Arg<Tile_Operand, "K x N">:$rhs,
    Arg<Optional<Tile_Tile>, "M x N f32">:$acc,
    Arg<Optional<Tile_Tile>, "the first columns of lhs">:$kept,
    UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Res<Tile_Tile, "M x N f32">:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                   "::mlir::Value":$acc, "bool":$transposeLhs, "bool":$transposeRhs), [{
      build($_builder, $_state, result, lhs, rhs, acc, /*kept=*/::mlir::Value(), transposeLhs,
            transposeRhs);
    }]>];
  let assemblyFormat = [{
    $lhs `,` $rhs (`,` $acc^)? (`kept` $kept^)? attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs))
    (`,` qualified(type($acc))^)? (`kept` qualified(type($kept))^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "combines the elements of each row";
  let description = [{
    From M x N to M, or to M x 4. In M x 4, column q of the result combines the columns c with c / 2
    mod 4 == q: the partial results of the four lanes that share a row (layout `#tile.quad`).
    Another `tile.reduce` reduces them further. `init` is combined with the elements of its row, or
    of its part of one.

    ```mlir
    %m = tile.reduce max %s : tensor<128x96xf32, #acc> -> tensor<128xf32, #tile.row<#acc>>
    %l = tile.reduce add %p, %l0 : tensor<128x96xf32, #acc>, tensor<128x4xf32, #tile.quad<#acc>>
                                -> tensor<128x4xf32, #tile.quad<#acc>>
    ```
  }];
  let arguments = (ins
    Tile_CombinerAttr:$combiner,
    Arg<Tile_Tile, "M x N">:$source,
    Arg<Optional<Tile_Tile>, "M, or M x 4">:$init);
  let results = (outs Res<Tile_Tile, "M, or M x 4">:$result);
  let assemblyFormat = [{
    $combiner $source (`,` $init^)? attr-dict
    `:` qualified(type($source)) (`,` qualified(type($init))^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_SumDiagonalsOp : Tile_Op<"sum_diagonals", [Pure, SameOperandsAndResultType]> {
  let summary = "sums the elements of each diagonal, sixteen rows at a time";
  let description = [{
    A warp has 16 rows. The first element of each diagonal, in the first of these rows or in the
    first column, becomes the sum of the diagonal's elements in the 16 rows. All other elements
    become zeros:

    ```
    result[m,n] = sum over i < 16 - m mod 16 with n + i < N of source[m+i,n+i]     m mod 16 = 0 or n = 0
    result[m,n] = 0                                                                elsewhere
    ```

    ```mlir
    %sums = tile.sum_diagonals %ds : tensor<128x64xf32, #acc>
    ```
  }];
  let arguments = (ins Arg<Tile_Tile, "M x N, f32">:$source);
  let results = (outs Res<Tile_Tile, "M x N">:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "a scalar or a row vector as a tile";
  let description = [{
    A row vector's element becomes all elements of its row.

    ```mlir
    %t = tile.broadcast %m : tensor<128xf32, #tile.row<#acc>> -> tensor<128x96xf32, #acc>
    ```
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[AnyFloat, AnyInteger, Index, Tile_Tile]>, "scalar or M">:$source);
  let results = (outs Res<Tile_Tile, "M x N, or M">:$result);
  let assemblyFormat = [{
    $source attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Tile_CoordOp : Tile_Op<"coord", [Pure]> {
  let summary = "the row or column number of each element, from an origin";
  let description = [{
    `result[i, j] = origin + (dim == 0 ? i : j)`.

    ```mlir
    %n = tile.coord 1 from %n0 : tensor<128x96xindex, #acc>
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<1>]>:$dim,
    Arg<Index, "global position">:$origin);
  let results = (outs Res<Tile_Tile, "index">:$result);
  let assemblyFormat = "$dim `from` $origin attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Tile_PartBeginOp : Tile_Op<"part_begin", [Pure]> {
  let summary = "where a loop begins in each warpgroup of the role that computes";
  let description = [{
    In a role with as many warpgroups as there are `parts`, each warpgroup begins at its own number,
    which is not before `all`. All others begin at `all`. A warpgroup waits for the stages that it
    passes over, and gives them back (tile-make-rings).

    ```mlir
    %begin = tile.part_begin %all for %first, %second
    ```
  }];
  let arguments = (ins Index:$all, Variadic<Index>:$parts);
  let results = (outs Res<Index, "the same for all threads of a warpgroup">:$result);
  let assemblyFormat = "$all `for` $parts attr-dict";
}

def Tile_VoteOp : Tile_Op<"vote", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "whether all, or some, elements of a tile are true";
  let description = [{
    All threads of a block of one warpgroup vote, and meet.

    ```mlir
    %some = tile.vote any %keep : tensor<128x112xi1, #tile.acc<units = 1>>
    ```
  }];
  let arguments = (ins
    Tile_QuantifierAttr:$quantifier,
    Arg<Tile_Tile, "i1">:$source);
  let results = (outs Res<I1, "the same in all threads">:$result);
  let assemblyFormat = "$quantifier $source attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
}

def Tile_AnyRowOp : Tile_Op<"any_row", [Pure]> {
  let summary = "whether some row of those that a warp multiplies is true";
  let description = [{
    Each warp has an answer of its own, for its rows. So warps may pass over work on rows that none
    of theirs needs.

    ```mlir
    %some = tile.any_row %raised : tensor<128xi1, #tile.row<#tile.acc<units = 4, product = "mma.sync">>>
    ```
  }];
  let arguments = (ins Arg<Tile_Tile, "i1, a number for each row">:$source);
  let results = (outs Res<I1, "the same in all lanes of a warp">:$result);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
  let hasVerifier = 1;
}

def Tile_ConvertLayoutOp : Tile_Op<"convert_layout", [Pure]> {
  let summary = "the same tile, held by other threads";
  let description = [{
    Costs nothing when both layouts are the same map (`isSameMap`): a 16-bit accumulator is an A
    operand.

    ```mlir
    %a = tile.convert_layout %p
        : tensor<128x96xbf16, #acc> -> tensor<128x96xbf16, #tile.operand_a<units = 2>>
    ```
  }];
  let arguments = (ins Arg<Tile_Tile, "a tile">:$source);
  let results = (outs Res<Tile_Tile, "the same elements">:$result);
  let assemblyFormat = [{
    $source attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // TILE_OPS_TD
