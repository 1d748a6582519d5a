// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// A partial reduction over N: each of four parts has its own state, started from the neutral element.
// CHECK-LABEL: func @online(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: tensor<?x16xf32>, %[[MAX:[a-z0-9]+]]: tensor<?xf32>, %[[SUM:[a-z0-9]+]]: tensor<?xf32>)
func.func @online(%q: tensor<?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x16xf16>, %scale: f32,
                  %acc: tensor<?x16xf32>, %max: tensor<?xf32>, %sum: tensor<?xf32>) -> (tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>) {
  // CHECK: linalg.fill ins(%cst{{.*}}) outs(%{{.*}} : tensor<4x?x16xf32>)
  // CHECK: linalg.fill ins(%cst{{.*}}) outs(%{{.*}} : tensor<4x?xf32>)
  // CHECK: %[[PARTS:.*]]:3 = scf.forall (%[[PART:.*]]) in (4)
  // CHECK: %[[STATE:.*]] = tensor.extract_slice %{{.*}}[%[[PART]], 0, 0] [1, %{{.*}}, 16] {{.*}} to tensor<?x16xf32>
  // CHECK: %[[STEP:.*]]:3 = attn.online_attention {{.*}} at(%c0, %c0, %c0, %{{.*}}) outs(%[[STATE]],
  // CHECK: tensor.parallel_insert_slice %[[STEP]]#0 into %{{.*}}[%[[PART]], 0, 0]
  // The joined maximum includes the op's own state, which is rescaled to it, as every part is.
  // CHECK: %[[JOINED:.*]] = linalg.generic {{.*}} ins(%[[PARTS]]#1 : tensor<4x?xf32>) outs(%[[MAX]] : tensor<?xf32>)
  // CHECK: arith.maximumf
  // CHECK: %[[RESCALED:.*]] = linalg.generic {{.*}} ins(%[[MAX]], %[[JOINED]] : tensor<?xf32>, tensor<?xf32>) outs(%[[ACC]] : tensor<?x16xf32>)
  // CHECK: math.exp2
  // CHECK: linalg.generic {{.*}} ins(%[[PARTS]]#1, %[[JOINED]], %[[PARTS]]#0 : tensor<4x?xf32>, tensor<?xf32>, tensor<4x?x16xf32>) outs(%[[RESCALED]]
  // CHECK: linalg.generic {{.*}} outs(%[[SUM]] : tensor<?xf32>)
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<?x64xf16>, tensor<?x64xf16>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
  return %r#0, %r#1, %r#2 : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:8 = transform.structured.tile_reduction_using_forall %op by num_threads = [0, 4] tile_sizes = [0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
