// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// The dimensions of the log-sum-exp are loops; a tile holds all partials of its rows.
// CHECK-LABEL: func @merge(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4x2x64x16xf32>, %[[L:[a-z0-9]+]]: tensor<4x2x64xf32>
func.func @merge(%p: tensor<4x2x64x16xf32>, %l: tensor<4x2x64xf32>, %o: tensor<2x64x16xf16>) -> tensor<2x64x16xf16> {
  // CHECK: scf.for %[[H:.*]] = %c0 to %c2 step %c1
  // CHECK: scf.for %[[M:.*]] = %c0 to %c64 step %c8
  // CHECK: tensor.extract_slice %[[P]][0, %[[H]], %[[M]], 0] [4, 1, 8, 16]
  // CHECK: tensor.extract_slice %[[L]][0, %[[H]], %[[M]]] [4, 1, 8]
  // CHECK: attn.merge {{.*}} : tensor<4x1x8x16xf32>, tensor<4x1x8xf32>, tensor<1x8x16xf16>
  %r = attn.merge %p, %l outs(%o) : tensor<4x2x64x16xf32>, tensor<4x2x64xf32>, tensor<2x64x16xf16> -> tensor<2x64x16xf16>
  return %r : tensor<2x64x16xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.merge"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:3 = transform.structured.tile_using_for %op tile_sizes [1, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
