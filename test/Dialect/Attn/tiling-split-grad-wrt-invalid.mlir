// RUN: attn-opt %s --transform-interpreter --verify-diagnostics

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>

// The gradient of a captured tensor is a sum over all tiles.
func.func @query(%q: !t, %n: !row, %slopes: tensor<?xf32>) -> (!t, tensor<?xf32>) {
  // expected-error@+3 {{expected no gradients of captured tensors, got 1: they are sums over all tiles}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %dq, %dw = attn.attention_grad_query %q, %q, %q, %q, %n, %n wrt(%slopes : tensor<?xf32>)
      : !t, !t, !t, !t, !row, !row -> d_query(!t) d_wrt(tensor<?xf32>)
  return %dq, %dw : !t, tensor<?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.attention_grad_query"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:4 = transform.structured.tile_using_for %op tile_sizes [1, 1, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
