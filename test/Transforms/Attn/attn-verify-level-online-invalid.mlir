// RUN: attn-opt %s --attn-verify-level=level=online --split-input-file --verify-diagnostics

func.func @attention(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op does not belong to level 'online': expected attn.online_attention}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return
}

// -----

func.func @control_flow(%c: i1) {
  // expected-error@+1 {{'cf.assert' op does not belong to level 'online'}}
  cf.assert %c, "no"
  return
}
