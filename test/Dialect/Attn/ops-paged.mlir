// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @paged(
// CHECK-SAME: %[[POOL:.*]]: tensor<?x64x?x128xbf16>, %[[TABLE:.*]]: tensor<?x?xi32>)
func.func @paged(%pool: tensor<?x64x?x128xbf16>, %table: tensor<?x?xi32>) -> tensor<?x?x?x128xbf16> {
  // CHECK: attn.paged %[[POOL]][%[[TABLE]]] : tensor<?x64x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  %k = attn.paged %pool[%table] : tensor<?x64x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  return %k : tensor<?x?x?x128xbf16>
}

// Pages of one key: indices of tokens.
// CHECK-LABEL: func.func @tokens(
func.func @tokens(%pool: tensor<9x1x2x64xf32>, %table: tensor<3x5xi64>) -> tensor<3x2x5x64xf32> {
  // CHECK: attn.paged %{{.*}}[%{{.*}}] : tensor<9x1x2x64xf32>, tensor<3x5xi64> -> tensor<3x2x5x64xf32>
  %k = attn.paged %pool[%table] : tensor<9x1x2x64xf32>, tensor<3x5xi64> -> tensor<3x2x5x64xf32>
  return %k : tensor<3x2x5x64xf32>
}
