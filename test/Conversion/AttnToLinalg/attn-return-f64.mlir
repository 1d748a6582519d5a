// RUN: attn-opt %s --attn-return-f64 | FileCheck %s

// Results that a function returns are not rounded to their types.
// CHECK-LABEL: func @returned(
// CHECK-SAME: -> (tensor<1x2x3x16xf64>, tensor<1x2x3xf64>)
func.func @returned(%q: tensor<1x2x3x16xf16>) -> (tensor<1x2x3x16xf16>, tensor<1x2x3xf32>) {
  // CHECK: attn.attention {{.*}} -> tensor<1x2x3x16xf64>, tensor<1x2x3xf64>
  %o, %lse = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>, tensor<1x2x3xf32>
  return %o, %lse : tensor<1x2x3x16xf16>, tensor<1x2x3xf32>
}

// A result that something else reads keeps its type.
// CHECK-LABEL: func @read(
func.func @read(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // CHECK: attn.attention {{.*}} -> tensor<1x2x3x16xf16>
  // CHECK: attn.attention {{.*}} -> tensor<1x2x3x16xf64>
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  %p = attn.attention %o, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %p : tensor<1x2x3x16xf16>
}

// Nor are gradients, nor what they start from.
// CHECK-LABEL: func @gradient(
// CHECK-SAME: -> tensor<1x2x3x16xf64>
func.func @gradient(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // CHECK: attn.attention {{.*}} -> tensor<1x2x3x16xf64>, tensor<1x2x3xf64>
  // CHECK: attn.attention_grad {{.*}} -> d_query(tensor<1x2x3x16xf64>)
  %o, %lse = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>, tensor<1x2x3xf32>
  %d = attn.attention_grad %q, %q, %q, %o, %lse, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>,
    tensor<1x2x3x16xf16>, tensor<1x2x3xf32>, tensor<1x2x3x16xf16> -> d_query(tensor<1x2x3x16xf16>)
  return %d : tensor<1x2x3x16xf16>
}

// Nor are scaled elements, on the way to attention.
// CHECK-LABEL: func @scaled(
// CHECK-COUNT-2: attn.scaled {{.*}} -> tensor<1x2x3x16xf32>
// CHECK: attn.attention {{.*}} tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf64>
func.func @scaled(%x: tensor<1x2x3x16xf8E5M2>, %y: tensor<1x2x3x16xf8E5M2>, %s: tensor<f32>) -> tensor<1x2x3x16xf16> {
  %q = attn.scaled %x, %s : tensor<1x2x3x16xf8E5M2>, tensor<f32> -> tensor<1x2x3x16xf16>
  %k = attn.scaled %y, %s : tensor<1x2x3x16xf8E5M2>, tensor<f32> -> tensor<1x2x3x16xf16>
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %q, %c2 : tensor<1x2x3x16xf16>
  %o = attn.attention %q, %k, %k : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
