// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

// The definition does not need the fact.
// CHECK-LABEL: func @assume(
// CHECK-SAME: %[[IDS:.*]]: tensor<?xi32>
func.func @assume(%ids: tensor<?xi32>) -> tensor<?xi32> {
  // CHECK-NEXT: return %[[IDS]]
  %sorted = attn.assume nondecreasing %ids : tensor<?xi32>
  return %sorted : tensor<?xi32>
}
