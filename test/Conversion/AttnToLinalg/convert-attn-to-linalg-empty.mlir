// RUN: attn-opt %s --convert-attn-to-linalg | FileCheck %s

// Static extents of 0 mean something too: no keys, O = 0.
// CHECK-LABEL: func @no_keys(
func.func @no_keys(%q: tensor<1x1x2x16xf32>, %k: tensor<1x1x0x16xf32>) -> tensor<1x1x2x16xf32> {
  // CHECK-NOT: attn.attention
  // CHECK: linalg.generic
  %o = attn.attention %q, %k, %k : tensor<1x1x2x16xf32>, tensor<1x1x0x16xf32>, tensor<1x1x0x16xf32> -> tensor<1x1x2x16xf32>
  return %o : tensor<1x1x2x16xf32>
}
