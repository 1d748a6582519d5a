// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// The state is read and written in place: no copy when nothing else reads it.
// CHECK-LABEL: func @in_place(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: memref<8x16xf32>, %[[MAX:[a-z0-9]+]]: memref<8xf32>, %[[SUM:[a-z0-9]+]]: memref<8xf32>)
func.func @in_place(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
                    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NOT: alloc
  // CHECK: attn.online_attention {{.*}} outs(%[[ACC]], %[[MAX]], %[[SUM]])
  // CHECK-SAME: memref<8x64xf16>, memref<4x64xf16>, memref<4x16xf16>, memref<8x16xf32>, memref<8xf32>, memref<8xf32>
  // CHECK: return %[[ACC]], %[[MAX]], %[[SUM]]
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
}

// The old state is read again, so its contents are copied first.
// CHECK-LABEL: func @copied(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: memref<8x16xf32>,
func.func @copied(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
                  %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<8x16xf32>
  // CHECK: memref.copy %[[ACC]], %[[NEW]]
  // CHECK: attn.online_attention {{.*}} outs(%[[NEW]],
  // CHECK: return %[[ACC]], %[[NEW]]
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return %acc, %r#0 : tensor<8x16xf32>, tensor<8x16xf32>
}
