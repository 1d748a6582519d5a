//===- AttnGradOps.td - gradients of attention ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_GRAD_OPS_TD
#define ATTN_GRAD_OPS_TD

//===----------------------------------------------------------------------===//
// Room 1: the gradients
//===----------------------------------------------------------------------===//

def Attn_AttentionGradOp : Attn_Op<"attention_grad", [
    AttrSizedOperandSegments, AttrSizedResultSegments, Pure, Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "the gradients of attention that are wanted";
  let description = [{
    The gradients of a scalar function of `output` and `lse`, with respect to the tensors that attention reads.
    `d_output` and `d_lse` (zeros when absent) are the function's gradients of `output` and `lse`. With `c = scale`
    and the scores `S`, `T` and positions of `attn.attention`:

    ```
    delta[b,h,m] = sum_d d_output[b,h,m,d] * output[b,h,m,d] - d_lse[b,h,m]
    P[b,h,m,n]   = exp(T[b,h,m,n] - lse[b,h,m])                           0 where dropped; lse_low corrects it (s17)
    dP[b,h,m,n]  = sum_d d_output[b,h,m,d] * value[b,h/g,n,d]
    dT[b,h,m,n]  = P * (dP - delta)                                       0 where P is 0
    dS[b,h,m,n]  = grad(S, dT, b, h, m, n)                                default: dT; 0 where P is 0
    d_query[b,h,m,:]  = c * sum_n dS[b,h,m,n] * key[b,h/g,n,:]
    d_key[b,h',n,:]   = c * sum over h of group h' and m of dS[b,h,m,n] * query[b,h,m,:]
    d_value[b,h',n,:] = sum over h of group h' and m of P[b,h,m,n] * d_output[b,h,m,:]
    d_sink[h]         = - sum over b and m of exp(sink[h] - lse[b,h,m]) * delta[b,h,m]
    d_wrt[i]          = sum of all contributions to wrt[i], with the delta of attn.attention_grad_delta
    ```

    `output`, `lse` and `lse_low` belong to the whole softmax, also where these keys are a part of it: gradients of
    parts add up. Without `lse_low` the weights of a row add up to 1 only up to the rounding of its `lse`. No
    weight is above 1: the greatest scores of a row of -1e9 have weight 1 each.

    The results are optional one by one; a result that is not wanted is not computed. `wrt` lists captured tensors of
    floats that the score region reads, and `d_wrt` are their gradients. The `grad` region is the adjoint of the score
    region: it makes the gradient of the score from a score and the gradient of its result. `attn-derive-score` writes
    it.

    ```mlir
    func.func @grad(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %o: tensor<?x?x?x64xbf16>,
                    %lse: tensor<?x?x?xf32>, %slopes: tensor<?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?xf32>) {
      %dq, %dslopes = attn.attention_grad %q, %k, %k, %o, %lse, %o variants [#attn.alibi<top_left>]
          captures(%slopes : tensor<?xf32>) wrt(%slopes : tensor<?xf32>)
          : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>,
            tensor<?x?x?xf32>, tensor<?x?x?x64xbf16> -> d_query(tensor<?x?x?x64xbf16>) d_wrt(tensor<?xf32>)
      return %dq, %dslopes : tensor<?x?x?x64xbf16>, tensor<?xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, M, D)">:$query,
    Arg<AnyRankedTensor, "(B, Hkv, N, D)">:$key,
    Arg<AnyRankedTensor, "(B, Hkv, N, Dv)">:$value,
    Arg<AnyRankedTensor, "(B, H, M, Dv), the output of attention, after every merge">:$output,
    Arg<AnyRankedTensor, "(B, H, M) f32 (or f64), natural logarithm, likewise">:$lse,
    Arg<AnyRankedTensor, "(B, H, M, Dv), the gradient of output">:$d_output,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), of attn.attention; none means zeros">:$lse_low,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), the gradient of lse; none means zeros">:$d_lse,
    Arg<Optional<F32>, "factor of the dot products">:$scale,
    Arg<Optional<AnyRankedTensor>, "(H) f32, an extra logit in each row's denominator">:$sink,
    Arg<Variadic<Index>, "global (b, h, m, n) of this op's first element; none means zeros">:$origin,
    Arg<Variadic<AnyRankedTensor>, "tensors that the variants read, in their order">:$captures,
    Arg<Variadic<AnyRankedTensor>, "captured tensors of floats whose gradients are wanted">:$wrt,
    OptionalAttr<ArrayAttr>:$variants);
  let results = (outs
    Res<Optional<AnyRankedTensor>, "(B, H, M, D)">:$d_query,
    Res<Optional<AnyRankedTensor>, "(B, Hkv, N, D)">:$d_key,
    Res<Optional<AnyRankedTensor>, "(B, Hkv, N, Dv)">:$d_value,
    Res<Optional<AnyRankedTensor>, "(H) f32 (or f64)">:$d_sink,
    Res<Variadic<AnyRankedTensor>, "f32 (or f64), of the shapes of wrt">:$d_wrt);
  let regions = (region
    MaxSizedRegion<1>:$score,
    MaxSizedRegion<1>:$mask,
    MaxSizedRegion<1>:$grad);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $output `,` $lse `,` $d_output
    (`variants` $variants^)? (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`lse_low` `(` $lse_low^ `:` type($lse_low) `)`)? (`d_lse` `(` $d_lse^ `:` type($d_lse) `)`)?
    (`scale` `(` $scale^ `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)? (`at` `(` $origin^ `)`)?
    (`wrt` `(` $wrt^ `:` type($wrt) `)`)? attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($output) `,` type($lse) `,` type($d_output)
    `->` (`d_query` `(` type($d_query)^ `)`)? (`d_key` `(` type($d_key)^ `)`)? (`d_value` `(` type($d_value)^ `)`)?
    (`d_sink` `(` type($d_sink)^ `)`)? (`d_wrt` `(` type($d_wrt)^ `)`)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getMatrices();
  }];
}

def Attn_ContributeOp : Attn_Op<"contribute", [
    ParentOneOf<["AttentionGradOp", "AttentionGradQueryOp", "AttentionGradKeyValueOp", "GradCapturedStepOp"]>]> {
  let summary = "adds to one element of the gradient of a captured tensor";
  let description = [{
    Stands in a `grad` region, where the score region reads an element of a tensor in `wrt`. The read's adjoint is
    added to the same element of the tensor's gradient, for every (b, h, m, n) that is not dropped, in any order. The
    op names the tensor that is read.

    ```mlir
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %bias[%h, %n] : tensor<?x?xf32>
      attn.yield %dt : f32
    }
    ```
  }];
  let arguments = (ins
    Arg<F32, "the adjoint of the read">:$addend,
    Arg<Attn_Shaped, "the captured tensor that was read">:$tensor,
    Arg<Variadic<Index>, "where it was read; in attn.grad_captured_step, within its sum">:$indices);
  let assemblyFormat = "$addend `to` $tensor `[` $indices `]` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rooms 1 and 2: the gradients in two passes, over rows and over keys
//===----------------------------------------------------------------------===//

def Attn_RowDeltaOp : Attn_Op<"row_delta", [
    AttrSizedOperandSegments, Pure, DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  let summary = "the numbers that the gradients of a row's scores share";
  let description = [{
    ```
    neg_lse2[b,h,m] = -lse[b,h,m] * log2(e)                                 -inf where lse is -inf
    delta[b,h,m]    = sum_d d_output[b,h,m,d] * output[b,h,m,d] - d_lse[b,h,m]
    neg_low2[b,h,m] = -lse_low[b,h,m]
    ```

    `neg_lse2` is the lse of base 2 with its sign changed, so that `P = exp2(T * log2(e) + neg_lse2)`. A row that
    keeps nothing has -inf, not +inf, so that every finite score gives it 0. With `neg_low2`,
    `P = exp2((T * log2(e) + neg_lse2) + neg_low2)`, in this order: the first sum is of numbers that are near to each
    other, so it is exact. `d_lse` is zeros when absent.

    ```mlir
    %neg_lse2, %delta = attn.row_delta %o, %do, %lse
        : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>, tensor<?x?x?xf32>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, M, Dv)">:$output,
    Arg<AnyRankedTensor, "(B, H, M, Dv), its gradient">:$d_output,
    Arg<AnyRankedTensor, "(B, H, M) f32 (or f64), natural logarithm">:$lse,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), the part that lse lost to rounding, base 2">:$lse_low,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), the gradient of lse">:$d_lse);
  let results = (outs
    Res<AnyRankedTensor, "(B, H, M) f32 (or f64)">:$neg_lse2,
    Res<AnyRankedTensor, "(B, H, M) f32 (or f64)">:$delta,
    Res<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), where there is an lse_low">:$neg_low2);
  let assemblyFormat = [{
    $output `,` $d_output `,` $lse (`lse_low` `(` $lse_low^ `:` type($lse_low) `)`)?
    (`d_lse` `(` $d_lse^ `:` type($d_lse) `)`)? attr-dict
    `:` type($output) `,` type($d_output) `,` type($lse) `->` type($neg_lse2) `,` type($delta) (`,` type($neg_low2)^)?
  }];
  let hasVerifier = 1;
}

def Attn_AttentionGradDeltaOp : Attn_Op<"attention_grad_delta", [
    AttrSizedOperandSegments, Pure, Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  let summary = "delta from the weights themselves: a sum over keys for each row";
  let description = [{
    `delta` of `attn.row_delta` has the rounding error of the output, so the sum of `dT` over a row has this error. A
    score that reads the same large number at all keys of a row, for example a distance, multiplies the error in the
    gradient of a captured tensor. This op takes the error out, with the lines `P` and `dP` of `attn.attention_grad`:

    ```
    weight[b,h,m]    = sum_n P[b,h,m,n]
    residual[b,h,m]  = sum_n P[b,h,m,n] * (dP[b,h,m,n] - delta[b,h,m])
    of_sink[b,h,m]   = exp2(sink[h] * log2(e) + neg_lse2[b,h,m])                             no sink: 0
    total            = weight + of_sink
    exact_delta      = delta + (residual - of_sink * delta) / total - d_lse                  no d_lse: 0
    ```

    where `total` is 1 up to the rounding of `neg_lse2`:
    `abs(total - 1) <= clamp(2^-20 * abs(neg_lse2), 2^-16, 2^-8)`. In other rows `exact_delta` is `delta`: their
    softmax has more keys than this op. `dP` has the factor of the weight in it (g13). `delta` and `d_lse` are operand
    and result of the same `attn.row_delta`.

    ```mlir
    %exact = attn.attention_grad_delta %q, %k, %v, %do, %neg_lse2, %delta
        : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>,
          tensor<?x?x?xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, M, D)">:$query,
    Arg<AnyRankedTensor, "(B, Hkv, N, D)">:$key,
    Arg<AnyRankedTensor, "(B, Hkv, N, Dv)">:$value,
    Arg<AnyRankedTensor, "(B, H, M, Dv), the gradient of output">:$d_output,
    Arg<AnyRankedTensor, "(B, H, M) f32 (or f64), of attn.row_delta">:$neg_lse2,
    Arg<AnyRankedTensor, "(B, H, M) f32 (or f64), of attn.row_delta">:$delta,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), of attn.row_delta; none means zeros">:$neg_low2,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), the gradient of lse; none means zeros">:$d_lse,
    Arg<Optional<F32>, "factor of the dot products">:$scale,
    Arg<Optional<AnyRankedTensor>, "(H) f32, an extra logit in each row's denominator">:$sink,
    Arg<Variadic<Index>, "global (b, h, m, n) of this op's first element; none means zeros">:$origin);
  let results = (outs Res<AnyRankedTensor, "(B, H, M) f32 (or f64)">:$exact_delta);
  let regions = (region
    MaxSizedRegion<1>:$score,
    MaxSizedRegion<1>:$mask);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? (`d_lse` `(` $d_lse^ `:` type($d_lse) `)`)?
    (`scale` `(` $scale^ `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)? (`at` `(` $origin^ `)`)?
    attr-dict custom<ScoreAndMask>($score, $mask)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta)
    `->` type($exact_delta)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getMatrices();
  }];
}

/// Gradients from a row's `neg_lse2` and `delta`; each has its own results.
class Attn_SplitGradOp<string mnemonic, list<Trait> traits> : Attn_Op<mnemonic, !listconcat([
    AttrSizedOperandSegments, AttrSizedResultSegments, Pure, Attn_ScoredOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>], traits)> {
  let arguments = (ins
    Arg<AnyRankedTensor, "(B, H, M, D)">:$query,
    Arg<AnyRankedTensor, "(B, Hkv, N, D)">:$key,
    Arg<AnyRankedTensor, "(B, Hkv, N, Dv)">:$value,
    Arg<AnyRankedTensor, "(B, H, M, Dv), the gradient of output">:$d_output,
    Arg<AnyRankedTensor, "(B, H, M) f32 (or f64), of attn.row_delta">:$neg_lse2,
    Arg<AnyRankedTensor, "(B, H, M) f32 (or f64), of attn.row_delta, or attn.attention_grad_delta">:$delta,
    Arg<Optional<AnyRankedTensor>, "(B, H, M) f32 (or f64), of attn.row_delta; none means zeros">:$neg_low2,
    Arg<Optional<F32>, "factor of the dot products">:$scale,
    Arg<Variadic<Index>, "global (b, h, m, n) of this op's first element; none means zeros">:$origin,
    Arg<Variadic<AnyRankedTensor>, "captured tensors of floats whose gradients are wanted">:$wrt);
  let regions = (region
    MaxSizedRegion<1>:$score,
    MaxSizedRegion<1>:$mask,
    MaxSizedRegion<1>:$grad);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getMatrices();
  }];
  string operandFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? (`scale` `(` $scale^ `)`)? (`at` `(` $origin^ `)`)?
    (`wrt` `(` $wrt^ `:` type($wrt) `)`)? attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta)
  }];
}

def Attn_AttentionGradQueryOp : Attn_SplitGradOp<"attention_grad_query", []> {
  let summary = "the gradient of the queries: a sum over keys for each row";
  let description = [{
    The lines `P`, `dP`, `dT`, `dS`, `d_query` and `d_wrt` of `attn.attention_grad`, with the `P` of `attn.row_delta`.
    It tiles over (B, H, M) unless captured tensors have gradients. Those gradients are sums over everything, for which
    `attn-online-softmax` makes a grid of its own.

    ```mlir
    %dq = attn.attention_grad_query %q, %k, %v, %do, %neg_lse2, %delta
        : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>,
          tensor<?x?x?xf32>, tensor<?x?x?xf32> -> d_query(tensor<?x?x?x64xbf16>)
    ```
  }];
  let results = (outs
    Res<Optional<AnyRankedTensor>, "(B, H, M, D)">:$d_query,
    Res<Variadic<AnyRankedTensor>, "f32 (or f64), of the shapes of wrt">:$d_wrt);
  let assemblyFormat = operandFormat # [{
    `->` (`d_query` `(` type($d_query)^ `)`)? (`d_wrt` `(` type($d_wrt)^ `)`)?
  }];
}

def Attn_AttentionGradKeyValueOp : Attn_SplitGradOp<"attention_grad_key_value", []> {
  let summary = "the gradients of keys and values: a sum over rows, and the heads of a group, for each key";
  let description = [{
    The lines `P`, `dP`, `dT`, `dS`, `d_key`, `d_value` and `d_wrt` of `attn.attention_grad`, with the `P` of
    `attn.row_delta`. It tiles over (B, Hkv, N) unless captured tensors have gradients: a tile of one key head has the
    query heads of its group.

    ```mlir
    %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %neg_lse2, %delta
        : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>,
          tensor<?x?x?xf32>, tensor<?x?x?xf32> -> d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x64xbf16>)
    ```
  }];
  let results = (outs
    Res<Optional<AnyRankedTensor>, "(B, Hkv, N, D)">:$d_key,
    Res<Optional<AnyRankedTensor>, "(B, Hkv, N, Dv)">:$d_value,
    Res<Variadic<AnyRankedTensor>, "f32 (or f64), of the shapes of wrt">:$d_wrt);
  let assemblyFormat = operandFormat # [{
    `->` (`d_key` `(` type($d_key)^ `)`)? (`d_value` `(` type($d_value)^ `)`)? (`d_wrt` `(` type($d_wrt)^ `)`)?
  }];
}

#endif // ATTN_GRAD_OPS_TD
