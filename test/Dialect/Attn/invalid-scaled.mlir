// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @scaled_c1(%x: tensor<4x70x64xf8E4M3FN>, %scale: tensor<f32>) {
  // expected-error@+1 {{expected source of rank 4 (B, H, R, D), got rank 3}}
  %k = attn.scaled %x, %scale : tensor<4x70x64xf8E4M3FN>, tensor<f32> -> tensor<4x70x64xbf16>
  return
}

// -----

func.func @scaled_c1_elements(%x: tensor<3x4x70x64xi8>, %scale: tensor<f32>) {
  // expected-error@+1 {{expected source elements of type f8E4M3FN or f8E5M2, got 'i8'}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xi8>, tensor<f32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c1_result(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<f32>) {
  // expected-error@+1 {{expected result elements of type f16, bf16 or f32, got 'f64'}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E4M3FN>, tensor<f32> -> tensor<3x4x70x64xf64>
  return
}

// -----

func.func @scaled_c1_shape(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<f32>) {
  // expected-error@+1 {{expected source and result of one shape, got 'tensor<3x4x70x64xf8E4M3FN>' and 'tensor<3x4x70x32xbf16>'}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E4M3FN>, tensor<f32> -> tensor<3x4x70x32xbf16>
  return
}

// -----

func.func @scaled_c2(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3xf32>) {
  // expected-error@+1 {{expected scale of rank 0 or 2 (B, S), got rank 1}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E4M3FN>, tensor<3xf32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c2_elements(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3x4xbf16>) {
  // expected-error@+1 {{expected scale elements of type f32, got 'bf16'}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E4M3FN>, tensor<3x4xbf16> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c2_rank_of_blocks(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3x4xf32>) {
  // expected-error@+1 {{expected scale of rank 3 (B, S, C), got rank 2}}
  %k = attn.scaled %x, %scale block 64 : tensor<3x4x70x64xf8E4M3FN>, tensor<3x4xf32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c2_block(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3x4x2xf32>) {
  // expected-error@+1 {{expected a block of one row or more, got 0}}
  %k = attn.scaled %x, %scale block 0 : tensor<3x4x70x64xf8E4M3FN>, tensor<3x4x2xf32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c3(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<2x4xf32>) {
  // expected-error@+1 {{expected B of source and scale to agree, got 3 and 2}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E4M3FN>, tensor<2x4xf32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c3_heads(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3x3xf32>) {
  // expected-error@+1 {{expected heads of the scale that divide those of the source, got 'tensor<3x3xf32>' and 'tensor<3x4x70x64xf8E4M3FN>'}}
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E4M3FN>, tensor<3x3xf32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

func.func @scaled_c3_blocks(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3x4x3xf32>) {
  // expected-error@+1 {{expected C of source and scale to agree, got 2 and 3}}
  %k = attn.scaled %x, %scale block 64 : tensor<3x4x70x64xf8E4M3FN>, tensor<3x4x3xf32> -> tensor<3x4x70x64xbf16>
  return
}

// -----

// Results have 16 bits or more.
func.func @attention_c2_narrow(%q: tensor<1x1x8x64xf8E4M3FN>) {
  // expected-error@+1 {{expected output elements of type f16, bf16, f32 or f64, got 'f8E4M3FN'}}
  %o = attn.attention %q, %q, %q : tensor<1x1x8x64xf8E4M3FN>, tensor<1x1x8x64xf8E4M3FN>, tensor<1x1x8x64xf8E4M3FN> -> tensor<1x1x8x64xf8E4M3FN>
  return
}
