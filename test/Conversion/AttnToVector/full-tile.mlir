// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 | FileCheck %s

// Static 64 x 64 tiles of f32: rows in lanes, register tiles of 4 x 4, no remainders, no packing of keys and values.
// CHECK-LABEL: func @static(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<64x64xf32>, %[[K:[a-z0-9]+]]: memref<64x64xf32, strided<[?, 1], offset: ?>>, %[[V:[a-z0-9]+]]: memref<64x64xf32>
// CHECK-SAME:    %[[ACC:[a-z0-9]+]]: memref<64x64xf32>, %[[MAX:.*]]: memref<64xf32>, %[[SUM:.*]]: memref<64xf32>)
func.func @static(%q: memref<64x64xf32>, %k: memref<64x64xf32, strided<[?, 1], offset: ?>>, %v: memref<64x64xf32>,
                  %acc: memref<64x64xf32>, %max: memref<64xf32>, %sum: memref<64xf32>) {
  %scale = arith.constant 0.18 : f32
  // CHECK-DAG: %[[ROWS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
  // CHECK-DAG: %[[QT:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x64xf32>

  // The query is transposed.
  // CHECK: %[[WORD:.*]] = memref.load %[[Q]][%[[M:.*]], %[[D:.*]]] : memref<64x64xf32>
  // CHECK: memref.store %[[WORD]], %{{.*}}[%[[D]], %[[M]]] : memref<64x64xf32>

  // Sixteen sums over d beside four running maxima.
  // CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  // CHECK: scf.for
  // CHECK-COUNT-4: vector.load {{.*}} : memref<64x64xf32>, vector<16xf32>
  // CHECK: %[[S:.*]] = memref.load %[[K]]
  // CHECK: %[[B:.*]] = vector.broadcast %[[S]] : f32 to vector<16xf32>
  // CHECK-COUNT-4: vector.fma %{{.*}}, %[[B]]
  // CHECK-COUNT-12: vector.fma
  // CHECK-NOT: vector.fma
  // CHECK: scf.yield

  // Scores are scaled as they leave the registers.
  // CHECK: arith.mulf {{.*}} : vector<16xf32>
  // CHECK: vector.store

  // CHECK: vector.maskedload %[[MAX]]
  // CHECK: vector.maskedstore %[[MAX]]
  // CHECK: %[[SCORE:[a-z0-9]+]] = vector.load {{.*}} : memref<64x64xf32>, vector<16xf32>
  // CHECK: arith.addf %[[SCORE]], %{{.*}} : vector<16xf32>
  // CHECK: vector.maskedstore %[[SUM]]

  // Values are read where they lie; the tile's sums are added to the others.
  // CHECK: vector.load %[[V]]
  // CHECK: %[[OLD:.*]] = vector.load %[[ACC]]
  // CHECK: vector.fma %[[OLD]], %{{.*}}, %{{.*}} : vector<16xf32>
  // CHECK: vector.store {{.*}}, %[[ACC]]
  // CHECK-NOT: attn.online_attention
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<64x64xf32>, memref<64x64xf32, strided<[?, 1], offset: ?>>, memref<64x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64xf32>
  return
}
