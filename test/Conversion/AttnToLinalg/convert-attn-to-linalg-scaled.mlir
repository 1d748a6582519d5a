// RUN: attn-opt %s --convert-attn-to-linalg | FileCheck %s

// The definition of a view: each element is widened, multiplied by the scale of its head and block, and rounded.
// CHECK-LABEL: func.func @scaled(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x?x64xf8E4M3FN>, %[[SCALE:.*]]: tensor<?x?x?xf32>)
func.func @scaled(%x: tensor<?x?x?x64xf8E4M3FN>, %scale: tensor<?x?x?xf32>) -> tensor<?x?x?x64xbf16> {
  // CHECK: %[[GROUP:.*]] = arith.divui
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[X]] : tensor<?x?x?x64xf8E4M3FN>)
  // CHECK: %[[HEAD:.*]] = arith.divui %{{.*}}, %[[GROUP]] : index
  // CHECK: %[[BLOCK:.*]] = arith.divui
  // CHECK: tensor.extract %[[SCALE]][%{{.*}}, %[[HEAD]], %[[BLOCK]]]
  // CHECK: %[[PRODUCT:.*]] = arith.mulf
  // CHECK: arith.truncf %[[PRODUCT]] : f64 to bf16
  %k = attn.scaled %x, %scale block 32 : tensor<?x?x?x64xf8E4M3FN>, tensor<?x?x?xf32> -> tensor<?x?x?x64xbf16>
  return %k : tensor<?x?x?x64xbf16>
}
