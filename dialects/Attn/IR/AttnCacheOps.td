//===- AttnCacheOps.td - rows on their way into caches ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps before an attention: new keys and values are rotated and written where slots say. Both ops
// stay whole through rooms 1 to 3; room 4 makes a kernel of each, or a loop on a CPU.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CACHE_OPS_TD
#define ATTN_CACHE_OPS_TD

include "dialects/Attn/IR/AttnOps.td"

def Attn_RotaryOp : Attn_DestinationOp<"rotary"> {
  let summary = "rotary embedding: pairs of columns of each row, turned by its position";
  let description = [{
    With `source` (T, H, D), and with `cos` and `sin` (L, R / 2), row t takes line `p` of the tables, the nearest to
    `positions[t]` that there is. Pair i of the first R columns is (i, i + R / 2), or with `interleaved`
    (2 i, 2 i + 1):

    ```
    result[t, h, first]  = source[t, h, first]  * cos[p, i] - source[t, h, second] * sin[p, i]
    result[t, h, second] = source[t, h, second] * cos[p, i] + source[t, h, first]  * sin[p, i]
    ```

    Columns from R on are those of the source. Products and sums are in f32 and rounded once (s28).

    ```mlir
    %turned = attn.rotary %rows at %positions by %cos, %sin outs(%empty)
        : tensor<?x?x128xbf16>, tensor<?xi64>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x?x128xbf16>
        -> tensor<?x?x128xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(T, H, D), the rows">:$source,
    Arg<Attn_Shaped, "(T), the position of each row">:$positions,
    Arg<Attn_Shaped, "(L, R / 2), cosines of each position">:$cos,
    Arg<Attn_Shaped, "(L, R / 2), sines of each position">:$sin,
    Arg<Attn_Shaped, "(T, H, D)">:$output,
    UnitAttr:$interleaved);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $source `at` $positions `by` $cos `,` $sin (`interleaved` $interleaved^)? `outs` `(` $output `)` attr-dict
    `:` type($source) `,` type($positions) `,` type($cos) `,` type($sin) `,` type($output) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

def Attn_AppendOp : Attn_DestinationOp<"append", [AttrSizedOperandSegments]> {
  let summary = "writes rows of new keys or values where slots say";
  let description = [{
    With `source` (T, Hkv, D), `slots` (T) and `dest` (Np, P, Hkv, D), slot s is row s mod P of page s / P:

    ```
    result[slots[t] / P, slots[t] mod P, h, :] = source[t, h, :]      for t with 0 <= slots[t] < Np * P
    result[page, row, h, :] = dest[page, row, h, :]                   for other rows
    ```

    Rows without a slot go nowhere. Where slots are equal, each element is that of one of their rows, on a CPU that of
    the last (s23). Where `dest` is tensor.empty, the pool is memory of the caller's result, of which only these rows
    are written.

    With `rotary`, rows are turned on their way as `attn.rotary` turns them. An append of the result of an
    `attn.rotary` becomes that.

    ```mlir
    %pool = attn.append %new[%slots] into %empty
        : tensor<?x?x128xbf16>, tensor<?xi64>, tensor<?x64x?x128xbf16> -> tensor<?x64x?x128xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(T, Hkv, D), the new rows">:$source,
    Arg<Attn_Shaped, "(T), where each goes">:$slots,
    Arg<Optional<Attn_Shaped>, "(T), the position of each row">:$positions,
    Arg<Optional<Attn_Shaped>, "(L, R / 2), cosines of each position">:$cos,
    Arg<Optional<Attn_Shaped>, "(L, R / 2), sines of each position">:$sin,
    Arg<Attn_Shaped, "(Np, P, Hkv, D), the pages">:$dest,
    UnitAttr:$interleaved);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $source `[` $slots `]`
    (`rotary` `(` $positions^ `,` $cos `,` $sin `:` type($positions) `,` type($cos) `,` type($sin) `)`)?
    (`interleaved` $interleaved^)? `into` $dest attr-dict
    `:` type($source) `,` type($slots) `,` type($dest) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

#endif // ATTN_CACHE_OPS_TD
