// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @ragged(
// CHECK-SAME: %[[ROWS:.*]]: tensor<?x?x128xbf16>, %[[OFFSETS:.*]]: tensor<?xi32>, %[[M:.*]]: index)
func.func @ragged(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi32>, %m: index) -> tensor<?x?x?x128xbf16> {
  // CHECK: attn.ragged %[[ROWS]][%[[OFFSETS]]] up_to %[[M]] : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x?x128xbf16>
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x?x128xbf16>
  return %q : tensor<?x?x?x128xbf16>
}

// CHECK-LABEL: func.func @place(
// CHECK-SAME: %[[O:.*]]: tensor<3x2x?x64xf32>, %[[OFFSETS:.*]]: tensor<4xi64>, %[[OUT:.*]]: tensor<?x2x64xf32>)
func.func @place(%o: tensor<3x2x?x64xf32>, %offsets: tensor<4xi64>, %out: tensor<?x2x64xf32>) -> tensor<?x2x64xf32> {
  // CHECK: attn.place %[[O]][%[[OFFSETS]]] into %[[OUT]] : tensor<3x2x?x64xf32>, tensor<4xi64> -> tensor<?x2x64xf32>
  %t = attn.place %o[%offsets] into %out : tensor<3x2x?x64xf32>, tensor<4xi64> -> tensor<?x2x64xf32>
  return %t : tensor<?x2x64xf32>
}

// A log-sum-exp has no columns.
// CHECK-LABEL: func.func @lse(
func.func @lse(%lse: tensor<?x?x?xf32>, %offsets: tensor<?xi32>, %out: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // CHECK: attn.place %{{.*}}[%{{.*}}] into %{{.*}} : tensor<?x?x?xf32>, tensor<?xi32> -> tensor<?x?xf32>
  %t = attn.place %lse[%offsets] into %out : tensor<?x?x?xf32>, tensor<?xi32> -> tensor<?x?xf32>
  return %t : tensor<?x?xf32>
}
