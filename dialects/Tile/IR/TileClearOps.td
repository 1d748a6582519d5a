//===- TileClearOps.td - operations that keep what is not read out of products ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products multiply everything, also 0 by NaN. Where no row of a block gives a weight to a
// key, the key's value may be anything: it is made zeros before the product reads it. So are rows
// after the end of a sequence, before any product reads them: `from` says where they begin, in all
// three rooms, and nothing is marked.
//
//   room 4   %w = tile.clear_unread %v by %p if %c       tiles, before the product
//   room 5   tile.clear_unread %place by %p if %c        in place
//   room 6   scf.if %c {
//              tile.mark_read %p to %marks               each warp its own rows
//              tile.named_barrier                        the role knows what all of it reads
//              tile.clear_unread %stage by %marks
//              tile.fence async_shared
//              tile.named_barrier                        the product sees zeros; marks are free
//            }
//
//===----------------------------------------------------------------------===//

#ifndef TILE_CLEAR_OPS_TD
#define TILE_CLEAR_OPS_TD

include "dialects/Tile/IR/TileOps.td"

def Tile_MarkReadOp : Tile_Op<"mark_read"> {
  let summary = "writes which columns of a lhs hold more than zeros";
  let description = [{
    Each warp of the role writes a row of `marks`: a bit for each column, set where one of its rows
    of `weights` is not zero. The readers of the marks meet the role first.

    ```mlir
    tile.mark_read %p to %marks
        : tensor<128x112xbf16, #acc>, !tile.shared<8x8xi32, swizzle = 32>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Tile, "lhs of a product">:$weights,
    Arg<Tile_SharedType, "a row of bits for each warp", [MemWrite]>:$marks);
  let assemblyFormat = [{
    $weights `to` $marks attr-dict `:` qualified(type($weights)) `,` qualified(type($marks))
  }];
  let hasVerifier = 1;
}

def Tile_ClearUnreadOp : Tile_Op<"clear_unread",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "makes zeros of values that a product multiplies by nothing but zeros";
  let description = [{
    Row n of `values` becomes zeros if column n of the lhs is zero in every row. `by` is the lhs, or
    in room 6 the marks that `tile.mark_read` made of it. Or rows become zeros from row `from` on,
    for all products that follow. The rows of a register tile become rows of
    `result`. The rows of a shared tile are overwritten by the threads of the role, and a product
    sees the zeros after `tile.fence async_shared` and a barrier. Where `condition` is false nothing
    happens.

    ```mlir
    %w = tile.clear_unread %v by %p if %c
        : tensor<112x64xbf16>, tensor<128x112xbf16> -> tensor<112x64xbf16>
    tile.clear_unread %stage by %marks
        : !tile.shared<112x64xbf16, swizzle = 128>, !tile.shared<8x8xi32, swizzle = 32>
    tile.clear_unread %stage from %count : !tile.shared<112x64xbf16, swizzle = 128>
    ```
  }];
  let arguments = (ins
    Arg<Tile_Operand, "rhs of a product; cleared from a row on, either operand">:$values,
    Arg<Optional<Tile_Operand>, "its lhs, or the marks">:$by,
    Arg<Optional<Index>, "the first row to clear">:$from,
    Arg<Optional<I1>, "whether rows may be unread at all">:$condition);
  let results = (outs Res<Optional<Tile_Tile>, "the values, if they are no shared tile">:$result);
  let assemblyFormat = [{
    $values (`by` $by^)? (`from` $from^)? (`if` $condition^)? attr-dict
    `:` qualified(type($values)) (`,` qualified(type($by))^)? (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
}

#endif // TILE_CLEAR_OPS_TD
