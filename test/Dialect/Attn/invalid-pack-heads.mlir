// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @slots_c1(%q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected slots of 2, 4, 8, 16, 32 or 64, got 3}}
  %r = attn.pack_heads %q for %k by 3 : tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x2x9x64xbf16>
  return
}

// -----

func.func @slots_c1_unpack(%p: tensor<2x2x12xf32>, %q: tensor<2x8x3x64xbf16>) {
  // expected-error@+1 {{expected slots of 2, 4, 8, 16, 32 or 64, got 128}}
  %r = attn.unpack_heads %p like %q by 128 : tensor<2x2x12xf32>, tensor<2x8x3x64xbf16> -> tensor<2x8x3xf32>
  return
}

// -----

func.func @pack_heads_c1(%q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected 3 * 4 rows, got 13}}
  %r = attn.pack_heads %q for %k by 4 : tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x2x13x64xbf16>
  return
}

// -----

func.func @pack_heads_c1_heads(%q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected Hkv of key and result to agree, got 2 and 8}}
  %r = attn.pack_heads %q for %k by 4 : tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x8x12x64xbf16>
  return
}

// -----

func.func @pack_heads_c1_rank(%q: tensor<8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected source of rank 4 (B, H, M, D), got rank 3}}
  %r = attn.pack_heads %q for %k by 4 : tensor<8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x2x12x64xbf16>
  return
}

// -----

func.func @pack_heads_c1_element(%q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected source and result of one element type}}
  %r = attn.pack_heads %q for %k by 4 : tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x2x12x64xf16>
  return
}

// -----

func.func @unpack_heads_c1(%p: tensor<2x2x12x64xbf16>, %q: tensor<2x8x3x64xbf16>) {
  // expected-error@+1 {{expected M of query and result to agree, got 3 and 4}}
  %r = attn.unpack_heads %p like %q by 4 : tensor<2x2x12x64xbf16>, tensor<2x8x3x64xbf16> -> tensor<2x8x4x64xbf16>
  return
}

// -----

func.func @unpack_heads_c1_rank(%p: tensor<2x2xbf16>, %q: tensor<2x8x3x64xbf16>) {
  // expected-error@+1 {{expected source of rank 3 or 4, got 'tensor<2x2xbf16>'}}
  %r = attn.unpack_heads %p like %q by 4 : tensor<2x2xbf16>, tensor<2x8x3x64xbf16> -> tensor<2x8xbf16>
  return
}

// -----

func.func @unpack_heads_c1_columns(%p: tensor<2x2x12x64xbf16>, %q: tensor<2x8x3x64xbf16>) {
  // expected-error@+1 {{expected source and result of one element type and as many columns}}
  %r = attn.unpack_heads %p like %q by 4 : tensor<2x2x12x64xbf16>, tensor<2x8x3x64xbf16> -> tensor<2x8x3x32xbf16>
  return
}

// -----

func.func @count_parts_c1(%n: index) {
  // expected-error@+1 {{expected at most 1 to 1024 parts, got 0}}
  %r = attn.count_parts of %n keys %n up_to 0
  return
}

// -----

func.func @count_parts_c2(%n: index) {
  // expected-error@+1 {{expected the number of sequences as the first of the blocks, got none}}
  %r = attn.count_parts of keys %n up_to 8 slots
  return
}

// -----

func.func @pack_c1(%q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected 'attn.pack' to be 2, 4, 8, 16, 32 or 64, got 6 : i64}}
  %r = attn.attention %q, %k, %k {attn.pack = 6}
      : tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x8x3x64xbf16>
  return
}

// -----

// As many rows as no number says.
func.func @pack_heads_c1_overflow(%q: tensor<2x8x9223372036854775807x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected 9223372036854775807 * 8 rows, got 24}}
  %r = attn.pack_heads %q for %k by 8 : tensor<2x8x9223372036854775807x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x2x24x64xbf16>
  return
}

// -----

func.func @pack_sink_c1(%s: tensor<8xf32>, %q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected 3 * 4 rows, got 13}}
  %r = attn.pack_sink %s of %q for %k by 4 : tensor<8xf32>, tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x13xf32>
  return
}

// -----

func.func @pack_sink_c1_heads(%s: tensor<2xf32>, %q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected H of query and source to agree, got 8 and 2}}
  %r = attn.pack_sink %s of %q for %k by 4 : tensor<2xf32>, tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x12xf32>
  return
}

// -----

func.func @slots_c1_sink(%s: tensor<8xf32>, %q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  // expected-error@+1 {{expected slots of 2, 4, 8, 16, 32 or 64, got 5}}
  %r = attn.pack_sink %s of %q for %k by 5 : tensor<8xf32>, tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x15xf32>
  return
}
