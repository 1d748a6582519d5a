// RUN: attn-opt %s --transform-interpreter --canonicalize --cse --verify-diagnostics

// A loop that is not parallel needs no partial states: it carries the one there is.
func.func @online(%q: tensor<?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x16xf16>, %scale: f32,
                  %acc: tensor<?x16xf32>, %max: tensor<?xf32>, %sum: tensor<?xf32>) -> (tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>) {
  // expected-error@+3 {{expected N split into parallel parts}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<?x64xf16>, tensor<?x64xf16>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
  return %r#0, %r#1, %r#2 : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@+1 {{failed to tile using partial reduction}}
    %tiled:8 = transform.structured.tile_reduction_using_for %op by tile_sizes = [0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
