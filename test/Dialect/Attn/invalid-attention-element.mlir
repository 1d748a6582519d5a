// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c2(%q: tensor<2x4x3x16xi8>, %k: tensor<2x4x3x16xi8>, %v: tensor<2x4x3x16xi8>) {
  // expected-error@+1 {{expected query elements of type f8E4M3FN, f8E5M2, f16, bf16 or f32, got 'i8'}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xi8>, tensor<2x4x3x16xi8>, tensor<2x4x3x16xi8> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c2_f64(%q: tensor<2x4x3x16xf64>, %k: tensor<2x4x3x16xf64>, %v: tensor<2x4x3x16xf64>) {
  // expected-error@+1 {{expected query elements of type f8E4M3FN, f8E5M2, f16, bf16 or f32, got 'f64'}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xf64>, tensor<2x4x3x16xf64>, tensor<2x4x3x16xf64> -> tensor<2x4x3x16xf64>
  return
}

// -----

func.func @attention_c2_agree(%q: tensor<2x4x3x16xf16>, %k: tensor<2x4x3x16xbf16>, %v: tensor<2x4x3x16xf16>) {
  // expected-error@+1 {{expected query, key and value of one element type, got 'f16', 'bf16' and 'f16'}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xf16>, tensor<2x4x3x16xbf16>, tensor<2x4x3x16xf16> -> tensor<2x4x3x16xf16>
  return
}

// -----

func.func @attention_c2_output(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected output elements of type 'f32', f32 or f64, got 'f16'}}
  %o = attn.attention %q, %k, %v : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf16>
  return
}
