// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// Destinations are written without being read: a use of the old contents gets no copy of them.
// CHECK-LABEL: func @normalize(
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<8x16xf16>, %[[LSE:[a-z0-9]+]]: memref<8xf32>)
func.func @normalize(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %sink: f32,
                     %o: tensor<8x16xf16>, %lse: tensor<8xf32>) -> (tensor<8x16xf16>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<8xf32>
  // CHECK-NOT: memref.copy
  // CHECK: attn.normalize {{.*}} sink(%{{.*}}) outs(%[[O]], %[[NEW]])
  // CHECK: return %[[O]], %[[NEW]], %[[LSE]]
  %r:2 = attn.normalize %acc, %max, %sum sink(%sink) outs(%o, %lse)
    : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return %r#0, %r#1, %lse : tensor<8x16xf16>, tensor<8xf32>, tensor<8xf32>
}
