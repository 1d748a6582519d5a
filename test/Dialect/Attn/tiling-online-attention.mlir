// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// (M, N): rows are independent, keys run through the state.
// CHECK-LABEL: func @online(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<64x16xf16>, %[[K:[a-z0-9]+]]: tensor<128x16xf16>
func.func @online(%q: tensor<64x16xf16>, %k: tensor<128x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x16xf32> {
  // CHECK: scf.for %[[M:.*]] = %c0 to %c64 step %c8
  // CHECK: scf.for %[[N:.*]] = %c0 to %c128 step %c32
  // CHECK-DAG: %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[M]], 0] [8, 16]
  // CHECK-DAG: %[[KT:.*]] = tensor.extract_slice %[[K]][%[[N]], 0] [32, 16]
  // CHECK: attn.online_attention %[[QT]], %[[KT]], {{.*}} at(%c0, %c0, %[[M]], %[[N]])
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : tensor<64x16xf16>, tensor<128x16xf16>, tensor<128x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:3 = transform.structured.tile_using_for %op tile_sizes [8, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
