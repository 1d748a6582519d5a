// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// The fact was used before; on buffers it is gone.
// CHECK-LABEL: func @assume(
// CHECK-SAME: %[[IDS:.*]]: memref<?xi32>
func.func @assume(%ids: tensor<?xi32>, %i: index) -> i32 {
  // CHECK-NOT: attn.assume
  // CHECK: memref.load %[[IDS]]
  %sorted = attn.assume nondecreasing %ids : tensor<?xi32>
  %x = tensor.extract %sorted[%i] : tensor<?xi32>
  return %x : i32
}
