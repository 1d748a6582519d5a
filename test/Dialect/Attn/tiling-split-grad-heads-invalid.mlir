// RUN: attn-opt %s --transform-interpreter --canonicalize --cse --verify-diagnostics

!q = tensor<2x8x64x16xf16>
!k = tensor<2x4x100x16xf16>
!row = tensor<2x8x64xf32>

// Two of four key heads would be neither a group of query heads nor all of them.
func.func @heads(%q: !q, %k: !k, %n: !row) -> !k {
  // expected-error@+3 {{expected a tile of one key head or of all key heads}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %dk = attn.attention_grad_key_value %q, %k, %k, %q, %n, %n : !q, !k, !k, !q, !row, !row -> d_key(!k)
  return %dk : !k
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.attention_grad_key_value"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:2 = transform.structured.tile_using_for %op tile_sizes [0, 2, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
