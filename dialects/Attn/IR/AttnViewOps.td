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
