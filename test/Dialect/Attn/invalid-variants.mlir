// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c15(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected a variant (causal, window, prefix, chunked, document, key_length, softcap, alibi, relative_bias, dropout, positions), got 1 : i32}}
  %o = attn.attention %q, %q, %q variants [1 : i32] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c15_string(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected a variant (causal, window, prefix, chunked, document, key_length, softcap, alibi, relative_bias, dropout, positions), got "causal"}}
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

// -----

func.func @attention_c23(%q: tensor<2x4x3x16xf32>, %first: tensor<1xi32>, %total: tensor<2xi32>) {
  // expected-error@+1 {{expected #attn.positions<own, own, origin, own> as the first variant, got [#attn.causal<top_left>, #attn.positions<own, own, origin, own>]}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<top_left>, #attn.positions<own, own, origin, own>] captures(%first, %total : tensor<1xi32>, tensor<2xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c23_at(%q: tensor<2x4x3x16xf32>, %total: tensor<2xi32>, %i: index) {
  // expected-error@+1 {{expected #attn.positions<own, own, own, own> without 'at', got [#attn.positions<own, own, own, own>]}}
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, own, own>] captures(%total : tensor<2xi32>) at(%i, %i, %i, %i) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
