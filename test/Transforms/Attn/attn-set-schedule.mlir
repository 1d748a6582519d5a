// RUN: attn-opt %s --attn-set-schedule | FileCheck %s

// CHECK-LABEL: func @f32(
// CHECK: attn.attention {{.*}} {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
func.func @f32(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}

// A schedule that is there stays.
// CHECK-LABEL: func @kept(
// CHECK: {attn.schedule = #attn.schedule<block_m = 16, block_n = 80, splits = 2>}
func.func @kept(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %o = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 16, block_n = 80, splits = 2>} : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}
