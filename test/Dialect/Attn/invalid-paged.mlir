// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @paged_c1(%pool: tensor<8x64x2x128xbf16>, %table: tensor<6xi32>) {
  // expected-error@+1 {{expected table of rank 2 (B, C), got rank 1}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<6xi32> -> tensor<3x2x128x128xbf16>
  return
}

// -----

func.func @paged_c1_pool(%pool: tensor<8x64x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected pool of rank 4 (Np, P, Hkv, D), got rank 3}}
  %k = attn.paged %pool[%table] : tensor<8x64x128xbf16>, tensor<3x2xi32> -> tensor<3x2x128x128xbf16>
  return
}

// -----

func.func @paged_c1_result(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected result of rank 4 (B, Hkv, N, D), got rank 3}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi32> -> tensor<6x128x128xbf16>
  return
}

// -----

func.func @paged_c2(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi16>) {
  // expected-error@+1 {{expected a table of i32 or i64, got 'tensor<3x2xi16>'}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi16> -> tensor<3x2x128x128xbf16>
  return
}

// -----

func.func @paged_c2_pool(%pool: tensor<8x64x2x128xi8>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected a pool of f8E4M3FN, f8E5M2, f16, bf16 or f32, got 'tensor<8x64x2x128xi8>'}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xi8>, tensor<3x2xi32> -> tensor<3x2x128x128xi8>
  return
}

// -----

func.func @paged_c3(%pool: tensor<8x?x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected static P and D above 0, got 'tensor<8x?x2x128xbf16>'}}
  %k = attn.paged %pool[%table] : tensor<8x?x2x128xbf16>, tensor<3x2xi32> -> tensor<3x2x128x128xbf16>
  return
}

// -----

func.func @paged_c3_keys(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected 2 * 64 keys, got 'tensor<3x2x130x128xbf16>'}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi32> -> tensor<3x2x130x128xbf16>
  return
}

// -----

// As many keys as no number says.
func.func @paged_c3_overflow(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x9223372036854775807xi32>) {
  // expected-error@+1 {{expected 9223372036854775807 * 64 keys}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x9223372036854775807xi32> -> tensor<3x2x?x128xbf16>
  return
}

// -----

func.func @paged_c4(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected Hkv of pool and result to agree, got 2 and 4}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi32> -> tensor<3x4x128x128xbf16>
  return
}

// -----

func.func @paged_c4_batch(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected B of table and result to agree, got 3 and 8}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi32> -> tensor<8x2x128x128xbf16>
  return
}

// -----

func.func @paged_c4_columns(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected D of pool and result to agree, got 128 and 64}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi32> -> tensor<3x2x128x64xbf16>
  return
}

// -----

func.func @paged_c4_element(%pool: tensor<8x64x2x128xbf16>, %table: tensor<3x2xi32>) {
  // expected-error@+1 {{expected pool and result of one element type}}
  %k = attn.paged %pool[%table] : tensor<8x64x2x128xbf16>, tensor<3x2xi32> -> tensor<3x2x128x128xf16>
  return
}
