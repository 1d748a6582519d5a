// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// CHECK-DAG: #[[GROUP:.*]] = affine_map<()[s0] -> (s0 floordiv 4)>
// Known head counts: groups of four query heads, whole tiles of rows.
// CHECK-LABEL: func @grouped(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x8x64x16xf16>, %[[K:[a-z0-9]+]]: tensor<2x2x100x16xf16>
func.func @grouped(%q: tensor<2x8x64x16xf16>, %k: tensor<2x2x100x16xf16>) -> tensor<2x8x64x16xf16> {
  // CHECK: scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) = (0, 0, 0) to (2, 8, 64) step (1, 1, 64)
  // CHECK-NOT: affine.min
  // CHECK: %[[KH:.*]] = affine.apply #[[GROUP]]()[%[[H]]]
  // CHECK: tensor.extract_slice %[[K]][%{{.*}}, %[[KH]], 0, 0] [1, 1, 100, 16]
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<2x8x64x16xf16>, tensor<2x2x100x16xf16>, tensor<2x2x100x16xf16> -> tensor<2x8x64x16xf16>
  return %o : tensor<2x8x64x16xf16>
}

// H == Hkv: the head itself.
// CHECK-LABEL: func @multi_head(
// CHECK-SAME: %{{.*}}: tensor<2x8x64x16xf16>, %[[K:[a-z0-9]+]]: tensor<2x8x100x16xf16>
func.func @multi_head(%q: tensor<2x8x64x16xf16>, %k: tensor<2x8x100x16xf16>) -> tensor<2x8x64x16xf16> {
  // CHECK: scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) =
  // CHECK-NOT: affine.apply
  // CHECK: tensor.extract_slice %[[K]][%{{.*}}, %[[H]], 0, 0] [1, 1, 100, 16]
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<2x8x64x16xf16>, tensor<2x8x100x16xf16>, tensor<2x8x100x16xf16> -> tensor<2x8x64x16xf16>
  return %o : tensor<2x8x64x16xf16>
}

// One key head for all.
// CHECK-LABEL: func @multi_query(
// CHECK-SAME: %{{.*}}: tensor<2x8x64x16xf16>, %[[K:[a-z0-9]+]]: tensor<2x1x100x16xf16>
func.func @multi_query(%q: tensor<2x8x64x16xf16>, %k: tensor<2x1x100x16xf16>) -> tensor<2x8x64x16xf16> {
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %{{.*}}) =
  // CHECK: %[[KH:.*]] = affine.apply #{{.*}}()[%[[H]]]
  // CHECK: tensor.extract_slice %[[K]][%[[B]], %[[KH]], 0, 0] [1, 1, 100, 16]
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<2x8x64x16xf16>, tensor<2x1x100x16xf16>, tensor<2x1x100x16xf16> -> tensor<2x8x64x16xf16>
  return %o : tensor<2x8x64x16xf16>
}
