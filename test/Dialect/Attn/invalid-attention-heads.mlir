// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c6(%q: tensor<2x6x1x16xf32>, %k: tensor<2x4x1x16xf32>, %v: tensor<2x4x1x16xf32>) {
  // expected-error@+1 {{expected H to be a multiple of Hkv, got 6 and 4}}
  %o = attn.attention %q, %k, %v : tensor<2x6x1x16xf32>, tensor<2x4x1x16xf32>, tensor<2x4x1x16xf32> -> tensor<2x6x1x16xf32>
  return
}

// -----

func.func @attention_c6_fewer(%q: tensor<2x2x1x16xf32>, %k: tensor<2x4x1x16xf32>, %v: tensor<2x4x1x16xf32>) {
  // expected-error@+1 {{expected H to be a multiple of Hkv, got 2 and 4}}
  %o = attn.attention %q, %k, %v : tensor<2x2x1x16xf32>, tensor<2x4x1x16xf32>, tensor<2x4x1x16xf32> -> tensor<2x2x1x16xf32>
  return
}

// -----

func.func @attention_c6_none(%q: tensor<2x2x1x16xf32>, %k: tensor<2x0x1x16xf32>, %v: tensor<2x0x1x16xf32>) {
  // expected-error@+1 {{expected Hkv above 0, got 0}}
  %o = attn.attention %q, %k, %v : tensor<2x2x1x16xf32>, tensor<2x0x1x16xf32>, tensor<2x0x1x16xf32> -> tensor<2x2x1x16xf32>
  return
}
