// RUN: attn-opt %s --attn-prune-masked-tiles --verify-diagnostics

func.func @level(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+1 {{does not belong to level 'online': expected attn.online_attention}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return
}
