// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c9(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %s: tensor<2x4x3xf32>) {
  // expected-error@+1 {{expected sink of rank 1 (H), got rank 3}}
  %o = attn.attention %q, %k, %v sink(%s : tensor<2x4x3xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c9_rows(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %s: tensor<4x1xf32>) {
  // expected-error@+1 {{expected M of query and sink to agree, got 3 and 1}}
  %o = attn.attention %q, %k, %v sink(%s : tensor<4x1xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c9_element(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %s: tensor<4xf16>) {
  // expected-error@+1 {{expected sink elements of type f32, got 'f16'}}
  %o = attn.attention %q, %k, %v sink(%s : tensor<4xf16>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c9_heads(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{expected H of query and sink to agree, got 4 and 2}}
  %o = attn.attention %q, %k, %v sink(%s : tensor<2xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
