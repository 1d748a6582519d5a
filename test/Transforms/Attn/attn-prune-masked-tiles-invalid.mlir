// RUN: attn-opt %s --attn-prune-masked-tiles --verify-diagnostics

func.func @room(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+2 {{attn-prune-masked-tiles: expected room 3 'online', got room 1 'problem'}}
  // expected-note@+1 {{expected attn.online_attention, got attention over all keys at once}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return
}
