// RUN: attn-opt %s --transform-interpreter --canonicalize --cse --verify-diagnostics

// bottom_right is about the problem's M and N, which a tile does not know.
func.func @variants(%q: tensor<2x8x64x16xf16>) -> tensor<2x8x64x16xf16> {
  // expected-error@+3 {{expected score and mask regions, got variants: a tile does not know the problem's M and N}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<bottom_right>] : tensor<2x8x64x16xf16>, tensor<2x8x64x16xf16>, tensor<2x8x64x16xf16> -> tensor<2x8x64x16xf16>
  return %o : tensor<2x8x64x16xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:4 = transform.structured.tile_using_for %op tile_sizes [1, 1, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
