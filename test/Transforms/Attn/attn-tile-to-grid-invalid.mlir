// RUN: attn-opt %s --attn-tile-to-grid --split-input-file --verify-diagnostics

func.func @no_schedule(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{expected a 'attn.schedule' attribute (attn-set-schedule attaches one)}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

// -----

func.func @variants(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{expected score and mask regions, got variants (attn-expand-variants turns them into regions)}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<top_left>] {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

// -----

func.func @no_keys(%q: tensor<1x2x3x16xf16>, %k: tensor<1x2x0x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{expected static extents above 0, got 'tensor<1x2x0x16xf16>' (a dynamic extent may be 0)}}
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<1x2x3x16xf16>, tensor<1x2x0x16xf16>, tensor<1x2x0x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
