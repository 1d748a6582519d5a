// RUN: attn-opt %s --convert-attn-to-vector | FileCheck %s

// CHECK-LABEL: func @sum(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<4x8xf32>, %[[SUM:[a-z0-9]+]]: memref<8xf32>
func.func @sum(%x: memref<4x8xf32>, %sum: memref<8xf32>) {
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: memref.load %[[X]]
  // CHECK: memref.load %[[SUM]]
  // CHECK: memref.store %{{.*}}, %[[SUM]]
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
                  iterator_types = ["reduction", "parallel"]} ins(%x : memref<4x8xf32>) outs(%sum : memref<8xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  }
  return
}
