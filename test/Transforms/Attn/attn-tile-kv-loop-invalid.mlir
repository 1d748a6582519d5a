// RUN: attn-opt %s --attn-tile-kv-loop --split-input-file --verify-diagnostics

func.func @no_schedule(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x16xf32> {
  // expected-error@+1 {{expected a 'attn.schedule' attribute (attn-set-schedule attaches one)}}
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum) 
    : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}

// -----

func.func @room(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+2 {{attn-tile-kv-loop: expected room 3 'online', got room 1 'problem'}}
  // expected-note@+1 {{expected attn.online_attention, got attention over all keys at once}}
  %o = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
