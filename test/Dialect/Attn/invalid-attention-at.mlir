// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c10(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %i: index) {
  // expected-error@+1 {{expected 'at' to hold 4 positions (b, h, m, n), got 3}}
  %o = attn.attention %q, %k, %v at(%i, %i, %i) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
