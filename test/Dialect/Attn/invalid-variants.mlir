// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c15(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected a variant (causal, window, prefix, chunked, document, key_length, softcap, alibi, relative_bias, dropout), got 1 : i32}}
  %o = attn.attention %q, %q, %q variants [1 : i32] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c15_string(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected a variant (causal, window, prefix, chunked, document, key_length, softcap, alibi, relative_bias, dropout), got "causal"}}
  %o = attn.attention %q, %q, %q variants ["causal"] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c15_schedule(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{got #attn.schedule<block_m = 1, block_n = 1>}}
  %o = attn.attention %q, %q, %q variants [#attn.schedule<block_m = 1, block_n = 1>] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c19(%q: tensor<2x4x3x16xf32>, %i: index) {
  // expected-error@+1 {{expected variants aligned top_left beside 'at', got [#attn.causal<bottom_right>]}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<bottom_right>] at(%i, %i, %i, %i) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
