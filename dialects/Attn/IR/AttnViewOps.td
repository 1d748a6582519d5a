//===- AttnViewOps.td - views, through which attention reads and writes ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_VIEW_OPS_TD
#define ATTN_VIEW_OPS_TD

//===----------------------------------------------------------------------===//
// Rooms 1 to 3: keys in pages
//===----------------------------------------------------------------------===//

def Attn_PagedOp : Attn_Op<"paged", [Pure]> {
  let summary = "keys or values in pages of a pool, in the order that a table says";
  let description = [{
    With `pool` (Np, P, Hkv, D) and `table` (B, C), the result is (B, Hkv, C * P, D):

    ```
    result[b, h, n, :] = pool[table[b, n / P], n mod P, h, :]
    ```

    A view: nothing moves. Sequences may share pages. Where an entry of the table is no page of the pool, elements are
    undefined (s19), which is harmless for keys that no row keeps.

    ```mlir
    %key = attn.paged %pool[%table]
        : tensor<?x64x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(Np, P, Hkv, D), the pages">:$pool,
    Arg<AnyRankedTensor, "(B, C), the pages of each sequence in order">:$table);
  let results = (outs Res<AnyRankedTensor, "(B, Hkv, C * P, D)">:$result);
  let assemblyFormat = "$pool `[` $table `]` attr-dict `:` type($pool) `,` type($table) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// P, the keys of a page.
    int64_t getPageSize();
    /// The tensor and dimension that have the size of a dimension of the result: N is P times it.
    std::pair<::mlir::Value, int64_t> getSizeSource(int64_t dim);
  }];
}

//===----------------------------------------------------------------------===//
// Rooms 1 to 3: sequences of any lengths
//===----------------------------------------------------------------------===//

def Attn_RaggedOp : Attn_Op<"ragged", [Pure]> {
  let summary = "sequences of any lengths, which lie one after the other, as a batch";
  let description = [{
    With `rows` (T, H, D), or (T, H) for a log-sum-exp, `offsets` (B + 1) and `M = up_to`, the result is (B, H, M, D),
    or (B, H, M):

    ```
    result[b, h, m, ...] = rows[begin(b) + m, h, ...]   for m < rows(b)
    ```

    Sequence `b` begins at `offsets[b]` and ends where the next one begins; s20 says `begin` and `rows` for any
    offsets. A view: nothing moves. A sequence of more than `M` rows is cut. Rows that a sequence does not have are
    undefined and take no part: no mask has to drop them.

    ```mlir
    %query = attn.ragged %rows[%offsets] up_to %m
        : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x?x128xbf16>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(T, H, D) or (T, H), the rows of all sequences">:$rows,
    Arg<AnyRankedTensor, "(B + 1), where each sequence begins, and where the last one ends">:$offsets,
    Arg<Index, "M, the most rows of a sequence">:$up_to);
  let results = (outs Res<AnyRankedTensor, "(B, H, M, D) or (B, H, M)">:$result);
  let assemblyFormat = [{
    $rows `[` $offsets `]` `up_to` $up_to attr-dict `:` type($rows) `,` type($offsets) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attn_PlaceOp : Attn_Op<"place", [Pure, AllTypesMatch<["dest", "result"]>]> {
  let summary = "rows of a batch at the places of sequences: the inverse of attn.ragged";
  let description = [{
    With `source` (B, H, M, D), or (B, H, M) for a log-sum-exp, and `offsets` (B + 1), the result is `dest` (T, H, D),
    or (T, H), with the rows that exist:

    ```
    result[begin(b) + m, h, ...] = source[b, h, m, ...]   for m < rows(b)
    result[t, h, ...] = dest[t, h, ...]                   for other t
    ```

    Rows of `dest` that are in no sequence keep what they are, and rows that a sequence does not have go nowhere
    (s21). Where `dest` is tensor.empty, memory of the caller's result is not written there. Where it is filled with
    zeros, a device stores zeros in these rows alone.

    ```mlir
    %rows = attn.place %output[%offsets] into %empty
        : tensor<?x?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x128xbf16>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, M, D) or (B, H, M)">:$source,
    Arg<AnyRankedTensor, "(B + 1), as of attn.ragged">:$offsets,
    Arg<AnyRankedTensor, "(T, H, D) or (T, H)">:$dest);
  let results = (outs Res<AnyRankedTensor, "(T, H, D) or (T, H)">:$result);
  let assemblyFormat = [{
    $source `[` $offsets `]` `into` $dest attr-dict `:` type($source) `,` type($offsets) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Room 1: elements of 8 bits
//===----------------------------------------------------------------------===//

def Attn_ScaledOp : Attn_Op<"scaled", [Pure]> {
  let summary = "elements of 8 bits with scales, as the numbers that they stand for";
  let description = [{
    With `source` (B, H, R, D) and `scale` (), (B, S) or (B, S, C), where S divides H, and H is a multiple of it:

    ```
    result[b, h, r, :] = round(widen(source[b, h, r, :]) * scale[b, h / (H / S), r / block])
    ```

    in the element type of the result. Scales have no third dimension without `block`, and none at all for a tensor. A
    batch or head extent of 1 is that of all. A view: nothing moves, and attention may leave the rounding out. Room 4
    multiplies in 8 bits where both operands of a product are scaled.

    ```mlir
    %key = attn.scaled %bytes, %scales block 128
        : tensor<?x?x?x128xf8E4M3FN>, tensor<?x?x?xf32> -> tensor<?x?x?x128xbf16>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, R, D) of f8E4M3FN or f8E5M2">:$source,
    Arg<AnyRankedTensor, "(), (B, S) or (B, S, C) of f32">:$scale,
    OptionalAttr<I64Attr>:$block);
  let results = (outs Res<AnyRankedTensor, "(B, H, R, D) of f16, bf16 or f32">:$result);
  let assemblyFormat = [{
    $source `,` $scale (`block` $block^)? attr-dict `:` type($source) `,` type($scale) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Room 1: heads as rows
//===----------------------------------------------------------------------===//

def Attn_PackHeadsOp : Attn_Op<"pack_heads", [Pure]> {
  let summary = "the query heads that share a key head, as rows of one head";
  let description = [{
    With `g = H / Hkv` of `source` (B, H, M, D) and `key` (B, Hkv, N, D), `P` slots and `P >= g`, the result is
    (B, Hkv, M * P, D):

    ```
    result[b, k, m * P + j, :] = source[b, k * g + j, m, :]   for j < g; for other j any value
    ```

    A view: nothing moves. `attn.unpack_heads` is its inverse, for the results of attention.

    ```mlir
    %rows = attn.pack_heads %query for %key by 8
        : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$key, I64Attr:$slots);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `for` $key `by` $slots attr-dict `:` type($source) `,` type($key) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attn_PackSinkOp : Attn_Op<"pack_sink", [Pure]> {
  let summary = "the sinks of query heads that share a key head, one for each packed row";
  let description = [{
    With `g = H / Hkv` of `query` (B, H, M, D) and `key` (B, Hkv, N, D), and `P` slots, the result is (Hkv, M * P):

    ```
    result[k, m * P + j] = source[k * g + min(j, g - 1)]
    ```

    A view: nothing moves, and each row reads its sink where it ends.

    ```mlir
    %sinks = attn.pack_sink %sink of %query for %key by 8
        : tensor<?xf32>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$query, AnyRankedTensor:$key, I64Attr:$slots);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `of` $query `for` $key `by` $slots attr-dict
    `:` type($source) `,` type($query) `,` type($key) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attn_UnpackHeadsOp : Attn_Op<"unpack_heads", [Pure]> {
  let summary = "rows that are query heads, as heads again";
  let description = [{
    `result[b, k * g + j, m, ...] = source[b, k, m * P + j, ...]` for `j < g`. The source is an output (B, Hkv, M * P,
    Dv) or a log-sum-exp (B, Hkv, M * P), and H and M are the extents of `query`.

    ```mlir
    %o = attn.unpack_heads %rows like %query by 8
        : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$query, I64Attr:$slots);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `like` $query `by` $slots attr-dict `:` type($source) `,` type($query) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTN_VIEW_OPS_TD
