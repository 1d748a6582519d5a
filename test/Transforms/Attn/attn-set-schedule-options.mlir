// RUN: attn-opt %s --attn-set-schedule="block-n=80 splits=4" | FileCheck %s

// An option of 0 leaves the choice to the rule.
// CHECK-LABEL: func @f32(
// CHECK: {attn.schedule = #attn.schedule<block_m = 64, block_n = 80, splits = 4>}
func.func @f32(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}
