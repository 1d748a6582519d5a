// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// CHECK-LABEL: func @merge(
// CHECK-SAME: %[[P:[a-z0-9]+]]: memref<4x8x16xf32>, %[[L:[a-z0-9]+]]: memref<4x8xf32>, %[[O:[a-z0-9]+]]: memref<8x16xf16>)
func.func @merge(%p: tensor<4x8x16xf32>, %l: tensor<4x8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // CHECK-NOT: alloc
  // CHECK: attn.merge %[[P]], %[[L]] outs(%[[O]]) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf16>
  // CHECK: return %[[O]]
  %r = attn.merge %p, %l outs(%o) : tensor<4x8x16xf32>, tensor<4x8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}
