// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @assume(
// CHECK-SAME: %[[IDS:.*]]: tensor<?x?xi32>, %[[OFFSETS:.*]]: tensor<9xindex>
func.func @assume(%ids: tensor<?x?xi32>, %offsets: tensor<9xindex>) -> (tensor<?x?xi32>, tensor<9xindex>) {
  // CHECK: attn.assume nondecreasing %[[IDS]] : tensor<?x?xi32>
  // CHECK: attn.assume nondecreasing %[[OFFSETS]] : tensor<9xindex>
  %0 = attn.assume nondecreasing %ids : tensor<?x?xi32>
  %1 = attn.assume nondecreasing %offsets : tensor<9xindex>
  return %0, %1 : tensor<?x?xi32>, tensor<9xindex>
}
