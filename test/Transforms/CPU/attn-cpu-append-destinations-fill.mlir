// RUN: attn-opt %s --attn-cpu-append-destinations | FileCheck %s

// Two results that start from one constant start at two places.
// CHECK-LABEL: func @shared(
func.func @shared(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK-COUNT-2: tensor.empty()
  // CHECK-COUNT-2: linalg.fill
  // CHECK-NOT: linalg.fill
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x16xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %a = linalg.add ins(%x, %x : tensor<8x16xf32>, tensor<8x16xf32>) outs(%fill : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.sub ins(%x, %x : tensor<8x16xf32>, tensor<8x16xf32>) outs(%fill : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
}
