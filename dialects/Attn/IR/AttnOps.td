//===- AttnOps.td - operations of the attn dialect ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_OPS_TD
#define ATTN_OPS_TD

include "dialects/Attn/IR/AttnAttrs.td"
include "dialects/Attn/IR/AttnInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

/// Tensors before bufferization, strided memrefs after it: the same op, the same meaning.
def Attn_Shaped
    : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef], "ranked tensor or strided memref", "::mlir::ShapedType">;

/// Ops that have a tensor form with results and a memref form without.
class Attn_DestinationOp<string mnemonic, list<Trait> traits = []> : Attn_Op<mnemonic, !listconcat([
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>], traits)>;

//===----------------------------------------------------------------------===//
// Room 1: attention
//===----------------------------------------------------------------------===//

def Attn_AttentionOp : Attn_Op<"attention", [
    AttrSizedOperandSegments, AttrSizedResultSegments, Pure, Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  let summary = "scaled dot-product attention with score and mask functions";
  let description = [{
    For every batch `b`, head `h`, row `m`, with `g = H / Hkv`:

    ```
    S[n]   = scale * sum_d query[b,h,m,d] * key[b,h/g,n,d]        scale defaults to 1/sqrt(D)
    T[n]   = score(S[n], b, h, m, n)                              default: S[n]
    keep   = { n : mask(b, h, m, n) }                             default: all n
    L      = sum over keep of exp(T[n])  (+ exp(sink[h]), or exp(sink[h,m]))
    output[b,h,m,:] = sum over keep of exp(T[n]) / L * F[n] * value[b,h/g,n,:]
    lse[b,h,m]      = log(L)
    lse_low[b,h,m]  = log2(L) - round(lse[b,h,m] * log2(e))      the part that f32 loses (s17); 0 where lse is infinite
    ```

    F is the second value that the score region yields, or 1.

    `lse_low` is the part of the log-sum-exp for which an f32 has no digits, in base 2. Scores of -1e9 have steps of
    64, so `lse` cannot also hold the logarithm of a number of keys. Gradients that are given both parts compute the
    weights that this op computed, whatever the size of the scores. An op without `lse` has no `lse_low`.

    All arithmetic is in f32. A row that keeps nothing gives `output = 0` and `lse = -inf` (with a sink,
    `lse = sink`), never NaN. The regions are pure. They may capture scalars from outside, and ranked tensors, which
    they read with `tensor.extract`. Their index arguments are global positions: the position of the op's own element
    (0, 0, 0, 0) is `at`.

    `variants` is the spelled form of common regions; `attn-expand-variants` turns it into regions.

    ```mlir
    func.func @causal(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                      %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
      %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
          : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
      return %o : tensor<?x?x?x64xbf16>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, M, D)">:$query,
    Arg<AnyRankedTensor, "(B, Hkv, N, D)">:$key,
    Arg<AnyRankedTensor, "(B, Hkv, N, Dv)">:$value,
    Arg<Optional<F32>, "factor of the dot products">:$scale,
    Arg<Optional<AnyRankedTensor>, "(H) or (H, M) f32, an extra logit in each row's denominator">:$sink,
    Arg<Variadic<Index>, "global (b, h, m, n) of this op's first element; none means zeros">:$origin,
    Arg<Variadic<AnyRankedTensor>, "tensors that the variants read, in their order">:$captures,
    OptionalAttr<ArrayAttr>:$variants);
  let results = (outs
    Res<AnyRankedTensor, "(B, H, M, Dv)">:$output,
    Res<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), natural logarithm">:$lse,
    Res<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), the part that lse lost to rounding, base 2">:$lse_low);
  let regions = (region
    MaxSizedRegion<1>:$score,
    MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    $query `,` $key `,` $value
    (`variants` $variants^)? (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`scale` `(` $scale^ `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)? (`at` `(` $origin^ `)`)?
    attr-dict custom<ScoreAndMask>($score, $mask)
    `:` type($query) `,` type($key) `,` type($value) `->` type($output)
    (`,` type($lse)^)? (`,` type($lse_low)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getMatrices();
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<[
    "AttentionOp", "OnlineAttentionOp", "TileStatusOp", "AttentionGradOp", "AttentionGradDeltaOp",
    "AttentionGradQueryOp", "AttentionGradKeyValueOp", "GradDeltaStepOp", "GradQueryStepOp", "GradKeyValueStepOp",
    "GradFusedStepOp", "GradCapturedStepOp"]>]> {
  let summary = "ends a score region (one f32, or two), a grad region (one f32) or a mask region (one i1)";
  let description = [{
    A mask region yields whether key `n` is kept for row `m`. A score region yields the new score, and a grad region the
    gradient of the score. A second value of a score region is a factor of the weight in front of the value; the sum of
    weights does not know the factor.

    ```mlir
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyType, "the new score, or whether to keep the element">:$result,
    Arg<Optional<AnyType>, "factor of the weight">:$factor);
  let assemblyFormat = "attr-dict $result (`,` $factor^)? `:` type($result) (`,` type($factor)^)?";
}

def Attn_FactAttr : I32EnumAttr<"Fact", "what is known of a tensor's elements", [
    I32EnumAttrCase<"NonDecreasing", 0, "nondecreasing">]> {
  let cppNamespace = "::attn";
}

def Attn_AssumeOp : Attn_Op<"assume", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "states a fact about a captured tensor";
  let description = [{
    Returns its operand and promises that the fact holds along the last dimension. Mask regions that compare elements
    of a `nondecreasing` tensor get loop bounds by binary search. If the promise is broken, the set of kept elements
    is unspecified; memory outside the tensors is never touched.

    ```mlir
    %sorted = attn.assume nondecreasing %ids : tensor<?x?xi32>
    ```
  }];
  let arguments = (ins Attn_FactAttr:$fact, Arg<AnyRankedTensor, "integers or indices">:$source);
  let results = (outs Res<AnyRankedTensor, "the operand">:$result);
  let assemblyFormat = "$fact $source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Room 3: the online softmax
//===----------------------------------------------------------------------===//

def Attn_OnlineAttentionOp : Attn_DestinationOp<"online_attention", [
    DeclareOpInterfaceMethods<Attn_AbsorbingOpInterface, ["getRunningPosition", "getRunningMutable", "getFixed"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<PartialReductionOpInterface, [
      "generateInitialTensorForPartialReduction", "tileToPartialReduction", "mergeReductions",
      "getPartialResultTilePosition"]>]> {
  let summary = "one step of attention: absorbs a tile of keys into the running softmax state";
  let description = [{
    Works on the rows of one batch and one head, in base 2 (the caller folded log2(e) into `scale` or the score region):

    ```
    T[m,n]  = score(scale * sum_d query[m,d] * key[n,d], b, h, m0 + m, n0 + n)
    keep    = mask(b, h, m0 + m, n0 + n)
    max'[m] = max(row_max[m], max over kept n of T[m,n])
    a[m]    = exp2(row_max[m] - max'[m])                           0 while nothing is kept
    P[m,n]  = exp2(T[m,n] - max'[m])                               0 where not kept
    acc'    = a * acc + P * F * value                              F: the score region's second value, or 1
    sum'    = a * row_sum + sum_n P[m,n]
    ```

    The state starts as (0, -inf, 0); `attn.normalize` ends it. Disjoint tiles of keys may be absorbed in any order.

    ```mlir
    %state:3 = attn.online_attention %q, %k, %v scale(%scale) at(%b, %h, %m, %n) outs(%acc, %max, %sum)
        : tensor<?x64xbf16>, tensor<32x64xbf16>, tensor<32x16xbf16>, tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
        -> tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(M, D)">:$query,
    Arg<Attn_Shaped, "(N, D)">:$key,
    Arg<Attn_Shaped, "(N, Dv)">:$value,
    Arg<F32, "factor of the dot products">:$scale,
    Arg<Variadic<Index>, "global (b, h, m, n) of this op's first element; none means zeros">:$origin,
    Arg<Attn_Shaped, "(M, Dv) f32">:$acc,
    Arg<Attn_Shaped, "(M) f32">:$row_max,
    Arg<Attn_Shaped, "(M) f32">:$row_sum);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region
    MaxSizedRegion<1>:$score,
    MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    $query `,` $key `,` $value `scale` `(` $scale `)` (`at` `(` $origin^ `)`)?
    `outs` `(` $acc `,` $row_max `,` $row_sum `)` attr-dict custom<ScoreAndMask>($score, $mask)
    `:` type($query) `,` type($key) `,` type($value) `,` type($acc) `,` type($row_max) `,` type($row_sum)
    (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedOrigin();
  }];
}

def Attn_TileStatusOp : Attn_DestinationOp<"tile_status"> {
  let summary = "whether the mask keeps some, or all, of a tile";
  let description = [{
    Of the elements `(b, h, m + i, n + j)` with `i < rows` and `j < keys`:

    ```
    status[0] = 0   mask holds for none of them
                2   mask holds for all of them, and keys = size
                1   otherwise
    ```

    A tile without rows or keys has status 0.

    ```mlir
    %status = attn.tile_status %rows rows, %keys keys size 128 at(%b, %h, %m, %n) outs(%empty)
      mask(%bb, %hh, %mm, %nn) {
        %row = tensor.extract %ids[%bb, %mm] : tensor<?x?xi32>
        %key = tensor.extract %ids[%bb, %nn] : tensor<?x?xi32>
        %same = arith.cmpi eq, %row, %key : i32
        attn.yield %same : i1
      }
      : tensor<1xi32> -> tensor<1xi32>
    ```
  }];
  let arguments = (ins
    Arg<Index, "how many rows">:$rows,
    Arg<Index, "how many keys, at most the size">:$keys,
    Arg<Variadic<Index>, "global (b, h, m, n) of the first element; none means zeros">:$origin,
    Arg<1DTensorOf<[I32]>, "one number">:$status,
    ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<1073741824>]>:$size);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    $rows `rows` `,` $keys `keys` `size` $size (`at` `(` $origin^ `)`)?
    `outs` `(` $status `)` attr-dict custom<Mask>($mask) `:` type($status) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedOrigin();
  }];
}

def Attn_ListTilesOp : Attn_DestinationOp<"list_tiles"> {
  let summary = "lists the tiles of keys that some rows keep";
  let description = [{
    `status` holds a number of attn.tile_status for each tile of `size` keys. `tiles` gets the first keys of the tiles
    whose status is not 0. The last such tile comes first. After it come the other tiles of status 1, from the last to
    the first. Tiles of status 2 stand at the end of `tiles`, from its end towards its front, also from the last to
    the first. `counts` says how many tiles there are at the front and at the end.

    ```mlir
    %lists:2 = attn.list_tiles %status size 128 outs(%tiles, %counts)
        : tensor<?xi32>, tensor<?xi32>, tensor<2xi32> -> tensor<?xi32>, tensor<2xi32>
    ```
  }];
  let arguments = (ins
    Arg<1DTensorOf<[I32]>, "a number for each tile">:$status,
    Arg<1DTensorOf<[I32]>, "first keys of tiles, with a place for every tile">:$tiles,
    Arg<1DTensorOf<[I32]>, "two numbers">:$counts,
    ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<1073741824>]>:$size);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $status `size` $size `outs` `(` $tiles `,` $counts `)` attr-dict
    `:` type($status) `,` type($tiles) `,` type($counts) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

def Attn_NormalizeOp : Attn_DestinationOp<"normalize", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  let summary = "ends the online softmax: divides by the sum, forms the log-sum-exp";
  let description = [{
    ```
    output[m,:] = acc[m,:] / row_sum[m]                      0 where row_sum is 0
    lse[m]      = (row_max[m] + log2(row_sum[m])) * ln(2)     -inf where row_sum is 0
    lse_low[m]  = (row_max[m] - lse[m] * log2(e)) + log2(row_sum[m])     0 where lse is infinite
    ```

    With a `sink` (natural logarithm) exp(sink), or exp(sink[m]), is added to the sum first.

    ```mlir
    %o = attn.normalize %acc, %max, %sum outs(%empty)
        : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x16xbf16> -> tensor<?x16xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(M, Dv) f32">:$acc,
    Arg<Attn_Shaped, "(M) f32">:$row_max,
    Arg<Attn_Shaped, "(M) f32">:$row_sum,
    Arg<Optional<AnyTypeOf<[F32, AnyRankedTensor, AnyStridedMemRef]>>,
        "extra logit of this head, f32, or of each row, (M) f32">:$sink,
    Arg<Attn_Shaped, "(M, Dv)">:$output,
    Arg<Optional<Attn_Shaped>, "(M) f32">:$lse,
    Arg<Optional<Attn_Shaped>, "(M) f32, the part that lse lost to rounding, base 2">:$lse_low);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $acc `,` $row_max `,` $row_sum (`sink` `(` custom<Sink>($sink, type($sink))^ `)`)?
    `outs` `(` $output (`,` $lse^)? (`,` $lse_low^)? `)`
    attr-dict `:` type($acc) `,` type($row_max) `,` type($row_sum) `,` type($output)
    (`,` type($lse)^)? (`,` type($lse_low)^)? (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

//===----------------------------------------------------------------------===//
// The algebra of partial results
//===----------------------------------------------------------------------===//

def Attn_MergeOp : Attn_DestinationOp<"merge", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  let summary = "joins partial results over disjoint sets of keys";
  let description = [{
    `partial` and `partial_lse` have one leading dimension S more than the results:

    ```
    lse[x]      = log(sum_s exp(partial_lse[s,x]))                        -inf when all are -inf
    output[x,:] = sum_s exp(partial_lse[s,x] - lse[x]) * partial[s,x,:]   0 when lse is -inf
    ```

    A partial whose lse is -inf kept nothing: its output is not read into the sum, even if it is not finite.

    With `partial_low`, the `lse_low` of each part, `exp(partial_lse)` is `2^(partial_lse * log2(e) + partial_low)`, and
    `lse_low` is that of the whole (s17).

    ```mlir
    %o = attn.merge %partial, %partial_lse outs(%empty)
        : tensor<4x?x?x?x16xf32>, tensor<4x?x?x?xf32>, tensor<?x?x?x16xbf16> -> tensor<?x?x?x16xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(S, ..., Dv)">:$partial,
    Arg<Attn_Shaped, "(S, ...) f32">:$partial_lse,
    Arg<Optional<Attn_Shaped>, "(S, ...) f32, the part that each lse lost to rounding, base 2">:$partial_low,
    Arg<Attn_Shaped, "(..., Dv)">:$output,
    Arg<Optional<Attn_Shaped>, "(...) f32">:$lse,
    Arg<Optional<Attn_Shaped>, "(...) f32, the part that lse lost to rounding, base 2">:$lse_low);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $partial `,` $partial_lse (`partial_low` `(` $partial_low^ `:` type($partial_low) `)`)?
    `outs` `(` $output (`,` $lse^)? (`,` $lse_low^)? `)` attr-dict
    `:` type($partial) `,` type($partial_lse) `,` type($output) (`,` type($lse)^)? (`,` type($lse_low)^)?
    (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

//===----------------------------------------------------------------------===//
// Room 3: parts of the keys
//===----------------------------------------------------------------------===//

def Attn_CountPartsOp : Attn_Op<"count_parts", [Pure]> {
  let summary = "how many parts of the keys keep a device busy";
  let description = [{
    A number from 1 to `most`, and at most `keys` where `keys` is more than 0. The number is the same in all of a
    call. The device chooses it, for a grid of as many blocks as the product of `blocks`, which parts multiply. A
    device that does not choose has 1.

    With `slots` it is the number of places for parts that sequences get by their lengths (#plan.parts). The first of
    `blocks` counts the sequences.

    ```mlir
    %s = attn.count_parts of %b, %h, %tiles keys %n up_to 64
    ```
  }];
  let arguments = (ins Variadic<Index>:$blocks, Index:$keys, I64Attr:$most, UnitAttr:$slots);
  let results = (outs Index:$result);
  let assemblyFormat = "`of` $blocks `keys` $keys `up_to` $most (`slots` $slots^)? attr-dict";
  let hasVerifier = 1;
}

def Attn_PartBeginOp : Attn_Op<"part_begin", [Pure]> {
  let summary = "where a loop over tiles begins for each part of a block's rows";
  let description = [{
    A block's rows are in as many parts of one size as there are `parts`, in order. A loop that computes all rows
    begins at `all`. A loop that computes one part alone may begin at the part's number, which is not before `all`:
    the turns in front of the number change nothing in the part's rows. Results are the same either way.

    ```mlir
    %begin = attn.part_begin %all for %first, %second
    scf.for %n0 = %begin to %end step %c64 ...
    ```
  }];
  let arguments = (ins Index:$all, Variadic<Index>:$parts);
  let results = (outs Index:$result);
  let assemblyFormat = "$all `for` $parts attr-dict";
}

include "dialects/Attn/IR/AttnViewOps.td"
include "dialects/Attn/IR/AttnGradOps.td"
include "dialects/Attn/IR/AttnGradStepOps.td"

#endif // ATTN_OPS_TD
