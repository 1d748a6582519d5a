// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c8(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected lse of rank 3 (B, H, M), got rank 4}}
  %o:2 = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>, tensor<2x4x3x1xf32>
  return
}

// -----

func.func @attention_c8_element(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected lse elements of type f32 or f64, got 'f16'}}
  %o:2 = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>, tensor<2x4x3xf16>
  return
}

// -----

func.func @attention_c8_heads(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected H of query and lse to agree, got 4 and 5}}
  %o:2 = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>, tensor<2x5x3xf32>
  return
}

// -----

func.func @attention_c8_rows(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected M of query and lse to agree, got 3 and 16}}
  %o:2 = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>, tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c8_low(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected M of query and lse_low to agree, got 3 and 16}}
  %o:3 = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>, tensor<2x4x3xf32>, tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c22(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+1 {{expected lse beside lse_low, got none}}
  %o:2 = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 1>}> ({}, {})
    : (tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>) -> (tensor<1x2x3x16xf16>, tensor<1x2x3xf32>)
  return
}
