// RUN: attn-opt %s --attn-tile-kv-loop --canonicalize --cse | FileCheck %s

// CHECK-DAG: #[[SIZE:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 32)>
// The loop carries exactly (acc, row_max, row_sum); its last tile may be shorter.
// CHECK-LABEL: func @dynamic(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<64x16xf16>, %[[K:[a-z0-9]+]]: tensor<?x16xf16>, %{{.*}}: f32, %[[ACC:[a-z0-9]+]]: tensor<64x16xf32>, %[[MAX:[a-z0-9]+]]: tensor<64xf32>, %[[SUM:[a-z0-9]+]]: tensor<64xf32>)
func.func @dynamic(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x16xf32> {
  // CHECK: %[[N:.*]] = tensor.dim %[[K]], %c0
  // CHECK: %[[R:.*]]:3 = scf.for %[[N0:.*]] = %c0 to %[[N]] step %c32 iter_args(%[[A:.*]] = %[[ACC]], %[[X:.*]] = %[[MAX]], %[[S:.*]] = %[[SUM]])
  // CHECK: %[[KEYS:.*]] = affine.min #[[SIZE]](%[[N0]])[%[[N]]]
  // CHECK: %[[TILE:.*]] = tensor.extract_slice %[[K]][%[[N0]], 0] [%[[KEYS]], 16]
  // CHECK: %[[STEP:.*]]:3 = attn.online_attention %[[Q]], %[[TILE]], %{{.*}} at(%c0, %c0, %c0, %[[N0]]) outs(%[[A]], %[[X]], %[[S]])
  // CHECK: scf.yield %[[STEP]]#0, %[[STEP]]#1, %[[STEP]]#2
  // CHECK: return %[[R]]#0
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
    : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}

// Keys between the heads, as (B, N, H, D) has them: the loop runs over the dimension that the slice keeps.
// CHECK-LABEL: func @heads_inside(
// CHECK-SAME: %[[N:[a-z0-9]+]]: index,
func.func @heads_inside(%q: tensor<64x16xf16>, %kv: tensor<?x?x?x16xf16>, %n: index, %b: index, %h: index, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x16xf32> {
  // CHECK: scf.for %{{.*}} = %c0 to %[[N]] step %c32
  %k = tensor.extract_slice %kv[%b, 0, %h, 0] [1, %n, 1, 16] [1, 1, 1, 1] : tensor<?x?x?x16xf16> to tensor<?x16xf16>
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
    : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}
