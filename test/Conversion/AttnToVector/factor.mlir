// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 --split-input-file | FileCheck %s

// Factors lie beside the scores, and multiply what is not summed.
// CHECK-LABEL: func @factor(
// CHECK-SAME:    %[[FACTORS:[a-z0-9]+]]: memref<?xf32>
func.func @factor(%factors: memref<?xf32>, %q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>,
                  %acc: memref<32x64xf32>, %max: memref<32xf32>, %sum: memref<32xf32>) {
  %scale = arith.constant 0.18 : f32
  // CHECK: %[[KEY:.*]] = memref.load %[[FACTORS]]
  // CHECK: %[[LANES:.*]] = vector.broadcast %[[KEY]] : f32 to vector<16xf32>
  // CHECK: vector.store %[[LANES]], %[[ROOM:.*]][%{{.*}}, %{{.*}}] : memref<64x32xf32>
  // CHECK: arith.addf
  // CHECK: %[[F:.*]] = vector.load %[[ROOM]]
  // CHECK-NEXT: %[[PF:.*]] = arith.mulf %{{.*}}, %[[F]] : vector<16xf32>
  // CHECK-NEXT: vector.store %[[PF]], %{{.*}} : memref<64x32xf32>
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    score(%s, %b, %h, %m, %n) {
      %f = memref.load %factors[%n] : memref<?xf32>
      attn.yield %s, %f : f32, f32
    }
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}
