// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func @normalize(
func.func @normalize(%acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>, %sink: f32, %o: tensor<64x16xf16>, %lse: tensor<64xf32>) -> (tensor<64x16xf16>, tensor<64xf32>) {
  // CHECK: scf.for %[[M:.*]] = %c0 to %c64 step %c8
  // CHECK: %[[R:.*]]:2 = attn.normalize {{.*}} sink(%{{.*}}) outs({{.*}}) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf32>
  // CHECK: tensor.insert_slice %[[R]]#0 into %{{.*}}[%[[M]], 0]
  // CHECK: tensor.insert_slice %[[R]]#1 into %{{.*}}[%[[M]]]
  %r:2 = attn.normalize %acc, %max, %sum sink(%sink) outs(%o, %lse)
    : tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x16xf16>, tensor<64xf32> -> tensor<64x16xf16>, tensor<64xf32>
  return %r#0, %r#1 : tensor<64x16xf16>, tensor<64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.normalize"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:2 = transform.structured.tile_using_for %op tile_sizes [8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
