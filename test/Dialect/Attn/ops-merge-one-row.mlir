// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// The smallest merge: partials (S, Dv) of one row, whose log-sum-exp has rank 0.
// CHECK-LABEL: func @one_row(
func.func @one_row(%p: tensor<?x16xf32>, %l: tensor<?xf32>, %o: tensor<16xf32>, %lse: tensor<f32>) -> (tensor<16xf32>, tensor<f32>) {
  // CHECK: attn.merge {{.*}} : tensor<?x16xf32>, tensor<?xf32>, tensor<16xf32>, tensor<f32> -> tensor<16xf32>, tensor<f32>
  %r:2 = attn.merge %p, %l outs(%o, %lse) : tensor<?x16xf32>, tensor<?xf32>, tensor<16xf32>, tensor<f32> -> tensor<16xf32>, tensor<f32>
  return %r#0, %r#1 : tensor<16xf32>, tensor<f32>
}
