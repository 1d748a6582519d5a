// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c5(%q: tensor<2x1x1x16xf32>, %k: tensor<3x1x1x16xf32>, %v: tensor<3x1x1x16xf32>) {
  // expected-error@+1 {{expected B of query and key to agree, got 2 and 3}}
  %o = attn.attention %q, %k, %v : tensor<2x1x1x16xf32>, tensor<3x1x1x16xf32>, tensor<3x1x1x16xf32> -> tensor<2x1x1x16xf32>
  return
}

// -----

func.func @attention_c5_value(%q: tensor<2x1x1x16xf32>, %k: tensor<2x1x1x16xf32>, %v: tensor<3x1x1x16xf32>) {
  // expected-error@+1 {{expected B of key and value to agree, got 2 and 3}}
  %o = attn.attention %q, %k, %v : tensor<2x1x1x16xf32>, tensor<2x1x1x16xf32>, tensor<3x1x1x16xf32> -> tensor<2x1x1x16xf32>
  return
}

// -----

func.func @attention_c5_heads(%q: tensor<2x4x1x16xf32>, %k: tensor<2x2x1x16xf32>, %v: tensor<2x1x1x16xf32>) {
  // expected-error@+1 {{expected Hkv of key and value to agree, got 2 and 1}}
  %o = attn.attention %q, %k, %v : tensor<2x4x1x16xf32>, tensor<2x2x1x16xf32>, tensor<2x1x1x16xf32> -> tensor<2x4x1x16xf32>
  return
}

// -----

func.func @attention_c5_keys(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x6x16xf32>) {
  // expected-error@+1 {{expected N of key and value to agree, got 5 and 6}}
  %o = attn.attention %q, %k, %v : tensor<2x4x1x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x6x16xf32> -> tensor<2x4x1x16xf32>
  return
}

// -----

func.func @attention_c7(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x5x16xf32>) {
  // expected-error@+1 {{expected B of query and output to agree, got 2 and 1}}
  %o = attn.attention %q, %k, %v : tensor<2x4x1x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32> -> tensor<1x4x1x16xf32>
  return
}

// -----

func.func @attention_c7_heads(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x5x16xf32>) {
  // expected-error@+1 {{expected H of query and output to agree, got 4 and 2}}
  %o = attn.attention %q, %k, %v : tensor<2x4x1x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32> -> tensor<2x2x1x16xf32>
  return
}

// -----

func.func @attention_c7_rows(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x5x16xf32>) {
  // expected-error@+1 {{expected M of query and output to agree, got 1 and 5}}
  %o = attn.attention %q, %k, %v : tensor<2x4x1x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32> -> tensor<2x4x5x16xf32>
  return
}

// -----

func.func @attention_c7_columns(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x5x32xf32>) {
  // expected-error@+1 {{expected Dv of value and output to agree, got 32 and 16}}
  %o = attn.attention %q, %k, %v : tensor<2x4x1x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x32xf32> -> tensor<2x4x1x16xf32>
  return
}

// -----

// `?` agrees with both, which do not agree with each other.
func.func @attention_c20(%q: tensor<2x?x1x16xf32>, %k: tensor<2x?x5x16xf32>, %sink: tensor<4xf32>) {
  // expected-error@+1 {{expected H of output and sink to agree, got 8 and 4}}
  %o = attn.attention %q, %k, %k sink(%sink : tensor<4xf32>) : tensor<2x?x1x16xf32>, tensor<2x?x5x16xf32>, tensor<2x?x5x16xf32> -> tensor<2x8x1x16xf32>
  return
}
