//===- AttnGradStepOps.td - gradients of attention, a tile at a time -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_GRAD_STEP_OPS_TD
#define ATTN_GRAD_STEP_OPS_TD

//===----------------------------------------------------------------------===//
// Room 3: sums of gradients, a tile of running rows or keys at a time
//===----------------------------------------------------------------------===//

def Attn_GradRowsOp : Attn_DestinationOp<"grad_rows", [AttrSizedOperandSegments]> {
  let summary = "the numbers that the gradients of a row's scores share, for rows of one head";
  let description = [{
    `attn.row_delta` of one batch and one head:

    ```
    neg_lse2[m] = -lse[m] * log2(e)                                  -inf where lse is -inf
    delta[m]    = sum_d d_output[m,d] * output[m,d] - d_lse[m]       no d_lse: 0
    neg_low2[m] = -lse_low[m]
    ```

    ```mlir
    %rows:2 = attn.grad_rows %o, %do, %lse outs(%e0, %e1)
        : tensor<?x64xbf16>, tensor<?x64xbf16>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
        -> tensor<?xf32>, tensor<?xf32>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(M, Dv)">:$output,
    Arg<Attn_Shaped, "(M, Dv), the gradient of output">:$d_output,
    Arg<Attn_Shaped, "(M) f32, natural logarithm">:$lse,
    Arg<Optional<Attn_Shaped>, "(M) f32, the part that lse lost to rounding, base 2">:$lse_low,
    Arg<Optional<Attn_Shaped>, "(M) f32, the gradient of lse">:$d_lse,
    Arg<Attn_Shaped, "(M) f32">:$neg_lse2,
    Arg<Attn_Shaped, "(M) f32">:$delta,
    Arg<Optional<Attn_Shaped>, "(M) f32, where there is an lse_low">:$neg_low2);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $output `,` $d_output `,` $lse (`lse_low` `(` $lse_low^ `:` type($lse_low) `)`)?
    (`d_lse` `(` $d_lse^ `:` type($d_lse) `)`)? `outs` `(` $neg_lse2 `,` $delta (`,` $neg_low2^)? `)` attr-dict
    `:` type($output) `,` type($d_output) `,` type($lse) `,` type($neg_lse2) `,` type($delta) (`,` type($neg_low2)^)?
    (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

/// A tile of rows and a tile of keys of one batch and one head, of which one stays for a block and
/// the other runs.
class Attn_GradStepOp<string mnemonic, dag inits> : Attn_DestinationOp<mnemonic, [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Attn_AbsorbingOpInterface, ["getRunningPosition", "getRunningMutable", "getFixed"]>]> {
  let arguments = !con((ins
    Arg<Attn_Shaped, "(M, D)">:$query,
    Arg<Attn_Shaped, "(N, D)">:$key,
    Arg<Attn_Shaped, "(N, Dv)">:$value,
    Arg<Attn_Shaped, "(M, Dv), the gradient of output">:$d_output,
    Arg<Attn_Shaped, "(M) f32, of attn.row_delta">:$neg_lse2,
    Arg<Attn_Shaped, "(M) f32, of attn.row_delta, or attn.grad_delta_end">:$delta,
    Arg<Optional<Attn_Shaped>, "(M) f32, of attn.row_delta; none means zeros">:$neg_low2,
    Arg<F32, "factor of the dot products">:$scale,
    Arg<Variadic<Index>, "global (b, h, m, n) of this op's first element; none means zeros">:$origin), inits);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region
    MaxSizedRegion<1>:$score,
    MaxSizedRegion<1>:$mask,
    MaxSizedRegion<1>:$grad);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedOrigin();
  }];
}

def Attn_GradQueryStepOp : Attn_GradStepOp<"grad_query_step", (ins Arg<Attn_Shaped, "(M, D) f32">:$acc)> {
  let summary = "absorbs a tile of keys into the gradient of a tile of queries";
  let description = [{
    ```
    S[m,n]  = scale * sum_d query[m,d] * key[n,d]
    T[m,n]  = score(S[m,n], b, h, m0 + m, n0 + n)
    P[m,n]  = exp2((T[m,n] * log2(e) + neg_lse2[m]) + neg_low2[m])   0 where mask is false; no neg_low2: 0
    dP[m,n] = sum_d d_output[m,d] * value[n,d]
    dT[m,n] = P[m,n] * (dP[m,n] - delta[m])                          0 where P is 0
    dS[m,n] = grad(S[m,n], dT[m,n], b, h, m0 + m, n0 + n)            0 where mask is false
    acc'    = acc + dS * key
    ```

    The factor of the dot products is left to the end: `attn.grad_end` multiplies once.

    ```mlir
    %dq = attn.grad_query_step %q, %k, %v, %do, %nl, %delta scale(%scale) at(%b, %h, %m, %n) outs(%acc)
        : tensor<?x64xbf16>, tensor<32x64xbf16>, tensor<32x16xbf16>, tensor<?x16xbf16>, tensor<?xf32>, tensor<?xf32>,
          tensor<?x64xf32> -> tensor<?x64xf32>
    ```
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? `scale` `(` $scale `)` (`at` `(` $origin^ `)`)?
    `outs` `(` $acc `)` attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta) `,`
    type($acc) (`->` type($results)^)?
  }];
}

def Attn_GradKeyValueStepOp : Attn_GradStepOp<"grad_key_value_step", (ins
    Arg<Attn_Shaped, "(N, D) f32">:$acc_key,
    Arg<Attn_Shaped, "(N, Dv) f32">:$acc_value)> {
  let summary = "absorbs a tile of rows into the gradients of a tile of keys and values";
  let description = [{
    The lines of `attn.grad_query_step` up to `dS`, then:

    ```
    acc_key'[n,:]   = acc_key[n,:] + sum_m dS[m,n] * query[m,:]
    acc_value'[n,:] = acc_value[n,:] + sum_m P[m,n] * d_output[m,:]
    ```

    ```mlir
    %dkv:2 = attn.grad_key_value_step %q, %k, %v, %do, %nl, %delta scale(%scale) at(%b, %h, %m, %n) outs(%dk, %dv)
        : tensor<32x64xbf16>, tensor<?x64xbf16>, tensor<?x16xbf16>, tensor<32x16xbf16>, tensor<32xf32>, tensor<32xf32>,
          tensor<?x64xf32>, tensor<?x16xf32> -> tensor<?x64xf32>, tensor<?x16xf32>
    ```
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? `scale` `(` $scale `)` (`at` `(` $origin^ `)`)?
    `outs` `(` $acc_key `,` $acc_value `)` attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta) `,`
    type($acc_key) `,` type($acc_value) (`->` type($results)^)?
  }];
}

def Attn_GradFusedStepOp : Attn_GradStepOp<"grad_fused_step", (ins
    Arg<Attn_Shaped, "(M, D) f32">:$acc_query,
    Arg<Attn_Shaped, "(N, D) f32">:$acc_key,
    Arg<Attn_Shaped, "(N, Dv) f32">:$acc_value)> {
  let summary = "absorbs a tile of rows and a tile of keys into the gradients of each other";
  let description = [{
    `attn.grad_key_value_step`, which also adds to the gradient of its rows as `attn.grad_query_step` does. The rows
    run, and their sum runs with them. So the op exists on buffers alone: a thread that owns keys and rows of a head
    adds in place.

    ```mlir
    attn.grad_fused_step %q, %k, %v, %do, %nl, %delta scale(%scale) at(%b, %h, %m, %n) outs(%dq, %dk, %dv)
        : memref<32x64xbf16>, memref<?x64xbf16>, memref<?x16xbf16>, memref<32x16xbf16>, memref<32xf32>, memref<32xf32>,
          memref<32x64xf32>, memref<?x64xf32>, memref<?x16xf32>
    ```
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? `scale` `(` $scale `)` (`at` `(` $origin^ `)`)?
    `outs` `(` $acc_query `,` $acc_key `,` $acc_value `)` attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta) `,`
    type($acc_query) `,` type($acc_key) `,` type($acc_value) (`->` type($results)^)?
  }];
}

def Attn_GradCapturedStepOp : Attn_GradStepOp<"grad_captured_step", (ins Arg<Attn_Shaped, "f32">:$sum)> {
  let summary = "absorbs a tile of keys into the gradient of a captured tensor";
  let description = [{
    The lines of `attn.grad_query_step` up to `dS`. The contributions of the grad region are added to `sum`, a part of
    the gradient of the one captured tensor that the region names. Indices are positions in the part. Nothing is added
    where P is 0.

    ```mlir
    %d = attn.grad_captured_step %q, %k, %v, %do, %nl, %delta scale(%scale) at(%b, %h, %m, %n) outs(%sum)
        score(%s, %bb, %hh, %mm, %nn) {
          %x = tensor.extract %bias[%hh, %nn] : tensor<?x?xf32>
          %t = arith.addf %s, %x : f32
          attn.yield %t : f32
        } grad(%s, %dt, %bb, %hh, %mm, %nn) {
          attn.contribute %dt to %bias[%nn] : tensor<?x?xf32>
          attn.yield %dt : f32
        } : tensor<?x64xbf16>, tensor<32x64xbf16>, tensor<32x16xbf16>, tensor<?x16xbf16>, tensor<?xf32>, tensor<?xf32>,
            tensor<?xf32> -> tensor<?xf32>
    ```
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? `scale` `(` $scale `)` (`at` `(` $origin^ `)`)?
    `outs` `(` $sum `)` attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta) `,`
    type($sum) (`->` type($results)^)?
  }];
}

def Attn_GradDeltaStepOp : Attn_GradStepOp<"grad_delta_step", (ins
    Arg<Attn_Shaped, "(M) f32">:$weight,
    Arg<Attn_Shaped, "(M) f32">:$residual)> {
  let summary = "absorbs a tile of keys into the sums that say how far delta is off";
  let description = [{
    The lines of `attn.grad_query_step` up to `dT`, then:

    ```
    weight'[m]   = weight[m] + sum_n P[m,n]
    residual'[m] = residual[m] + sum_n dT[m,n]
    ```

    Nothing is derived, so the grad region is empty. `attn.grad_delta_end` makes delta of the sums.

    ```mlir
    %s:2 = attn.grad_delta_step %q, %k, %v, %do, %nl, %delta scale(%scale) at(%b, %h, %m, %n) outs(%weight, %residual)
        : tensor<?x64xbf16>, tensor<32x64xbf16>, tensor<32x16xbf16>, tensor<?x16xbf16>, tensor<?xf32>, tensor<?xf32>,
          tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>, tensor<?xf32>
    ```
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $d_output `,` $neg_lse2 `,` $delta
    (`neg_low2` `(` $neg_low2^ `:` type($neg_low2) `)`)? `scale` `(` $scale `)` (`at` `(` $origin^ `)`)?
    `outs` `(` $weight `,` $residual `)` attr-dict custom<ScoreMaskAndGrad>($score, $mask, $grad)
    `:` type($query) `,` type($key) `,` type($value) `,` type($d_output) `,` type($neg_lse2) `,` type($delta) `,`
    type($weight) `,` type($residual) (`->` type($results)^)?
  }];
}

def Attn_GradDeltaEndOp : Attn_DestinationOp<"grad_delta_end", [AttrSizedOperandSegments]> {
  let summary = "ends the sums of attn.grad_delta_step: delta without its error";
  let description = [{
    `attn.attention_grad_delta` of one batch and one head, from its sums:

    ```
    of_sink[m] = exp2(sink * log2(e) + neg_lse2[m])                                no sink: 0
    total[m]   = weight[m] + of_sink[m]
    output[m]  = delta[m] + (residual[m] - of_sink[m] * delta[m]) / total[m] - d_lse[m]
    ```

    where `abs(total - 1) <= clamp(2^-20 * abs(neg_lse2), 2^-16, 2^-8)`, and `delta[m]` elsewhere. No `d_lse` is 0.

    ```mlir
    %exact = attn.grad_delta_end %weight, %residual, %nl, %delta outs(%empty)
        : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(M) f32, of attn.grad_delta_step">:$weight,
    Arg<Attn_Shaped, "(M) f32, of attn.grad_delta_step">:$residual,
    Arg<Attn_Shaped, "(M) f32, of attn.row_delta">:$neg_lse2,
    Arg<Attn_Shaped, "(M) f32, of attn.row_delta">:$delta,
    Arg<Optional<Attn_Shaped>, "(M) f32, the gradient of lse">:$d_lse,
    Arg<Optional<F32>, "extra logit of this head">:$sink,
    Arg<Attn_Shaped, "(M) f32">:$output);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $weight `,` $residual `,` $neg_lse2 `,` $delta (`d_lse` `(` $d_lse^ `:` type($d_lse) `)`)? (`sink` `(` $sink^ `)`)?
    `outs` `(` $output `)` attr-dict
    `:` type($weight) `,` type($residual) `,` type($neg_lse2) `,` type($delta) `,` type($output) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    /// How far from 1 rounding may take the weights of a row that has all its keys here.
    static constexpr double kLeastSlack = 0x1p-16, kMostSlack = 0x1p-8, kSlackOfLse = 0x1p-20;
  }];
}

def Attn_GradEndOp : Attn_DestinationOp<"grad_end"> {
  let summary = "ends a sum of gradients: scales and rounds";
  let description = [{
    `output = scale * acc`, rounded once to the element type of the output; no scale is 1.

    ```mlir
    %dq = attn.grad_end %acc scale(%scale) outs(%empty) : tensor<?x64xf32>, tensor<?x64xbf16> -> tensor<?x64xbf16>
    ```
  }];
  let arguments = (ins
    Arg<Attn_Shaped, "(X, Y) f32">:$acc,
    Arg<Optional<F32>, "factor of the dot products">:$scale,
    Arg<Attn_Shaped, "(X, Y)">:$output);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $acc (`scale` `(` $scale^ `)`)? `outs` `(` $output `)` attr-dict
    `:` type($acc) `,` type($output) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable();";
}

#endif // ATTN_GRAD_STEP_OPS_TD
