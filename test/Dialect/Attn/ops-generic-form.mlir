// RUN: attn-opt %s --verify-roundtrip --mlir-print-op-generic | FileCheck %s

// The generic form, which tools and fuzzers write: two regions always, here empty.
// CHECK: "attn.attention"(%{{.*}}, %{{.*}}, %{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> ({
// CHECK-NEXT: }, {
// CHECK-NEXT: }) :
func.func @generic(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  %o = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> ({}, {})
    : (tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
