// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// The output is of the inputs' type or wider; the log-sum-exp may be f64 too.
// CHECK-LABEL: func @widened(
func.func @widened(%q: tensor<1x2x3x16xf16>) -> (tensor<1x2x3x16xf64>, tensor<1x2x3xf64>) {
  // CHECK: -> tensor<1x2x3x16xf64>, tensor<1x2x3xf64>
  %o, %lse = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf64>, tensor<1x2x3xf64>
  return %o, %lse : tensor<1x2x3x16xf64>, tensor<1x2x3xf64>
}
