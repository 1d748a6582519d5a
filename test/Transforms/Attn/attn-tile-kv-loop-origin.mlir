// RUN: attn-opt %s --attn-tile-kv-loop --canonicalize --cse | FileCheck %s

// CHECK-DAG: #[[SUM:.*]] = affine_map<()[s0, s1] -> (s0 + s1)>
// Keys that do not start at 0: the position is that of the first key of each tile.
// CHECK-LABEL: func @origin(
// CHECK-SAME: %[[M:[a-z0-9]+]]: index, %[[FIRST:[a-z0-9]+]]: index)
func.func @origin(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>, %b: index, %h: index, %m: index, %n: index) -> tensor<64x16xf32> {
  // CHECK: scf.for %[[N0:.*]] = %c0 to
  // CHECK: %[[AT:.*]] = affine.apply #[[SUM]]()[%[[FIRST]], %[[N0]]]
  // CHECK: attn.online_attention {{.*}} at(%{{.*}}, %{{.*}}, %[[M]], %[[AT]])
  // CHECK: mask(
  %r:3 = attn.online_attention %q, %k, %k scale(%scale) at(%b, %h, %m, %n) outs(%acc, %max, %sum) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
    mask(%mb, %mh, %mm, %mn) {
      %keep = arith.cmpi sle, %mn, %mm : index
      attn.yield %keep : i1
    }
    : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x16xf32>
}
