// RUN: attn-opt %s --convert-attn-to-vector=lanes=8 | FileCheck %s

// What f32 has no digits for in lse, relative to the product with log2(e) as it is rounded.
// CHECK-LABEL: func @normalize(
// CHECK-SAME: %[[ACC:.*]]: memref<4x8xf32>, %[[MAX:.*]]: memref<4xf32>, %[[SUM:.*]]: memref<4xf32>, %[[OUT:.*]]: memref<4x8xf32>, %[[LSE:.*]]: memref<4xf32>, %[[LOW:.*]]: memref<4xf32>)
func.func @normalize(%acc: memref<4x8xf32>, %max: memref<4xf32>, %sum: memref<4xf32>, %o: memref<4x8xf32>, %lse: memref<4xf32>, %low: memref<4xf32>) {
  // CHECK: %[[M:.*]] = memref.load %[[MAX]]
  // CHECK: %[[LOG:.*]] = math.log2
  // CHECK: %[[L:.*]] = arith.select
  // CHECK: memref.store %[[L]], %[[LSE]]
  // CHECK: arith.constant 1.44269502 : f32
  // CHECK: %[[L2:.*]] = arith.mulf %[[L]], %{{.*}} : f32
  // CHECK: %[[D:.*]] = arith.subf %[[M]], %[[L2]]
  // CHECK: arith.addf %{{.*}}, %[[LOG]]
  // CHECK: memref.store %{{.*}}, %[[LOW]]
  attn.normalize %acc, %max, %sum outs(%o, %lse, %low) : memref<4x8xf32>, memref<4xf32>, memref<4xf32>, memref<4x8xf32>, memref<4xf32>, memref<4xf32>
  return
}

// Weights round as the forward pass does: a product, not a multiply-add.
// CHECK-LABEL: func @step(
func.func @step(%q: memref<4x8xf32>, %k: memref<16x8xf32>, %r: memref<4xf32>, %acc: memref<4x8xf32>, %scale: f32) {
  // CHECK: %[[T:.*]] = math.absf
  // CHECK: %[[T2:.*]] = arith.mulf %[[T]]
  // CHECK: %[[NEAR:.*]] = arith.addf %[[T2]]
  // CHECK: arith.addf %[[NEAR]]
  attn.grad_query_step %q, %k, %k, %q, %r, %r neg_low2(%r : memref<4xf32>) scale(%scale) outs(%acc)
    score(%s, %b, %h, %m, %n) {
      %t = math.absf %s : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.yield %dt : f32
    } : memref<4x8xf32>, memref<16x8xf32>, memref<16x8xf32>, memref<4x8xf32>, memref<4xf32>, memref<4xf32>, memref<4x8xf32>
  return
}
