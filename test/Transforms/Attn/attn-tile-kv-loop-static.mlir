// RUN: attn-opt %s --attn-tile-kv-loop --canonicalize --cse | FileCheck %s

// The bound is a constant; the size of a tile stays a minimum until attn-prune-masked-tiles.
// CHECK-LABEL: func @whole(
func.func @whole(%q: tensor<64x16xf16>, %k: tensor<96x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x16xf32> {
  // CHECK: scf.for %{{.*}} = %c0 to %c96 step %c32
  // CHECK: affine.min
  // CHECK: tensor.extract_slice {{.*}} to tensor<?x16xf16>
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
    : tensor<64x16xf16>, tensor<96x16xf16>, tensor<96x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}

// Fewer keys than a tile: no loop is left.
// CHECK-LABEL: func @one(
func.func @one(%q: tensor<64x16xf16>, %k: tensor<7x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x16xf32> {
  // CHECK-NOT: scf.for
  // CHECK: attn.online_attention {{.*}} tensor<7x16xf16>
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
    : tensor<64x16xf16>, tensor<7x16xf16>, tensor<7x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}
