// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1(%q: tensor<2x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected query of rank 4 (B, H, M, D), got rank 3}}
  %o = attn.attention %q, %k, %v : tensor<2x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c1_key(%q: tensor<2x4x3x16xf32>, %k: tensor<4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected key of rank 4 (B, Hkv, N, D), got rank 3}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c1_value(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<1x2x4x3x16xf32>) {
  // expected-error@+1 {{expected value of rank 4 (B, Hkv, N, Dv), got rank 5}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<1x2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c1_output(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected output of rank 4 (B, H, M, Dv), got rank 3}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x16xf32>
  return
}
