// RUN: attn-opt %s --convert-attn-to-vector=lanes=8 --split-input-file | FileCheck %s

// CHECK-LABEL: func @narrow(
// CHECK-SAME:    %[[ACC:.*]]: memref<?x24xf32>, %[[MAX:.*]]: memref<?xf32>, %[[SUM:.*]]: memref<?xf32>, %[[OUT:.*]]: memref<?x24xf16>, %[[LSE:.*]]: memref<?xf32>
func.func @narrow(%acc: memref<?x24xf32>, %max: memref<?xf32>, %sum: memref<?xf32>, %out: memref<?x24xf16>, %lse: memref<?xf32>) {
  // A row that kept nothing divides by nothing.
  // CHECK: %[[L:.*]] = memref.load %[[SUM]]
  // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[L]]
  // CHECK: %[[INVERSE:.*]] = arith.divf
  // CHECK: arith.select %[[EMPTY]], %{{.*}}, %[[INVERSE]]
  // CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
  // CHECK: vector.store {{.*}}, %[[OUT]]
  // CHECK: math.log2 %[[L]]
  // CHECK: %[[VALUE:.*]] = arith.select %[[EMPTY]]
  // CHECK: memref.store %[[VALUE]], %[[LSE]]
  attn.normalize %acc, %max, %sum outs(%out, %lse) : memref<?x24xf32>, memref<?xf32>, memref<?xf32>, memref<?x24xf16>, memref<?xf32>
  return
}

// -----

// The sink joins as one more key, all in natural logarithms: the larger of the two logits is the new maximum. Without lse there is
// no logarithm.
// CHECK-LABEL: func @sink(
// CHECK-SAME:    %[[SINK:[a-z0-9]+]]: f32
func.func @sink(%acc: memref<?x20xf32>, %max: memref<?xf32>, %sum: memref<?xf32>, %sink: f32, %out: memref<?x20xf32>) {
  // CHECK: %[[MAX:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK: arith.cmpf ogt, %[[MAX]], %[[SINK]]
  // The weight of a sink that is the maximum is 1, also where both are infinite.
  // CHECK: %[[IS_MAX:.*]] = arith.cmpf oeq, %[[SINK]]
  // CHECK: arith.select %[[IS_MAX]]
  // CHECK: vector.maskedload
  // CHECK: vector.maskedstore
  // CHECK-NOT: math.log2
  attn.normalize %acc, %max, %sum sink(%sink) outs(%out) : memref<?x20xf32>, memref<?xf32>, memref<?xf32>, memref<?x20xf32>
  return
}
