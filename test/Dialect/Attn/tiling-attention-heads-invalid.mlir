// RUN: attn-opt %s --transform-interpreter --canonicalize --cse --verify-diagnostics

// Two of eight heads would need a part of a key head's group.
func.func @heads(%q: tensor<2x8x64x16xf16>, %k: tensor<2x2x100x16xf16>) -> tensor<2x8x64x16xf16> {
  // expected-error@+3 {{expected a tile of one head or of all heads}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %o = attn.attention %q, %k, %k : tensor<2x8x64x16xf16>, tensor<2x2x100x16xf16>, tensor<2x2x100x16xf16> -> tensor<2x8x64x16xf16>
  return %o : tensor<2x8x64x16xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:2 = transform.structured.tile_using_for %op tile_sizes [0, 2, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
