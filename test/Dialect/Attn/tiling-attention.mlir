// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// Loops over B, H and M. A tile of one head reads one key head; the positions its regions see stay global.
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 32)>
// CHECK-DAG: #[[HEAD:.*]] = affine_map<()[s0, s1, s2] -> (s0 floordiv (s2 floordiv s1))>
// CHECK-LABEL: func @attention(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x64xbf16>, %[[K:[a-z0-9]+]]: tensor<?x?x?x64xbf16>
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  // CHECK: scf.for %[[B:.*]] = %c0
  // CHECK: scf.for %[[H:.*]] = %c0
  // CHECK: scf.for %[[M:.*]] = %c0 {{.*}} step %c32
  // CHECK: %[[SIZE:.*]] = affine.min #[[ROWS]](%[[M]])
  // CHECK: %[[KH:.*]] = affine.apply #[[HEAD]]()[%[[H]]
  // CHECK: tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[M]], 0] [1, 1, %[[SIZE]], 64]
  // CHECK: tensor.extract_slice %[[K]][%[[B]], %[[KH]], 0, 0]
  // CHECK: attn.attention {{.*}} at(%[[B]], %[[H]], %[[M]], %c0)
  // CHECK: mask(
  %o = attn.attention %q, %k, %k
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:4 = transform.structured.tile_using_for %op tile_sizes [1, 1, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
