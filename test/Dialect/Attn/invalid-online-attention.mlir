// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @online_attention_c1(%q: tensor<1x8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected query of rank 2 (M, D), got rank 3}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<1x8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c1_key(%q: tensor<8x64xf16>, %k: tensor<64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected key of rank 2 (N, D), got rank 1}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c1_element(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xi32>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected value elements of type f8E4M3FN, f8E5M2, f16, bf16 or f32, got 'i32'}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xi32>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c2(%q: tensor<8x64xf16>, %k: tensor<4x32xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected D of query and key to agree, got 64 and 32}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x32xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c2_keys(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<5x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected N of key and value to agree, got 4 and 5}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<5x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c2_rows(%q: tensor<9x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected M of query and acc to agree, got 9 and 8}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<9x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c2_columns(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x17xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected Dv of value and acc to agree, got 17 and 16}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x17xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @online_attention_c3(%q: tensor<8x0xf16>, %k: tensor<4x0xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected D above 0, got 'tensor<8x0xf16>' and 'tensor<4x0xf16>'}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x0xf16>, tensor<4x0xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}
