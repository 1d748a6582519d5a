// RUN: attn-opt %s --attn-split-kv --split-input-file --verify-diagnostics

func.func @room(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+2 {{attn-split-kv: expected room 3 'online', got room 1 'problem'}}
  // expected-note@+1 {{'attn.attention' in room 3 'online': expected attn.online_attention, got attention over all keys at once}}
  %o = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
