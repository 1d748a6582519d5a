// RUN: attn-opt %s --attn-return-f64 | FileCheck %s

// A function that is called keeps its type: the caller expects it.
// CHECK-LABEL: func @callee(
// CHECK-SAME: -> tensor<1x2x3x16xf16>
func.func @callee(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

func.func @caller(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  %o = call @callee(%q) : (tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
