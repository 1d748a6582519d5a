// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

// The result's type is the op's, where the operands say less or more.
// CHECK-LABEL: func @types(
func.func @types(%q: tensor<2x4x8x16xf16>) -> tensor<?x?x?x16xf32> {
  // CHECK: %[[CAST:.*]] = tensor.cast %{{.*}} : tensor<2x4x8x16xf32> to tensor<?x?x?x16xf32>
  // CHECK: return %[[CAST]]
  %o = attn.attention %q, %q, %q : tensor<2x4x8x16xf16>, tensor<2x4x8x16xf16>, tensor<2x4x8x16xf16> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}
