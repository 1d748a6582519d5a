// RUN: attn-opt %s --attn-set-schedule=bf16-dot | FileCheck %s

// Where the CPU multiplies pairs of bf16, more rows share a packed tile of values.
// CHECK-LABEL: func @bf16(
// CHECK: {attn.schedule = #attn.schedule<block_m = 128, block_n = 64>}
func.func @bf16(%q: tensor<1x2x3x16xbf16>) -> tensor<1x2x3x16xbf16> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xbf16>, tensor<1x2x3x16xbf16>, tensor<1x2x3x16xbf16> -> tensor<1x2x3x16xbf16>
  return %o : tensor<1x2x3x16xbf16>
}

// CHECK-LABEL: func @f32(
// CHECK: {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
func.func @f32(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}
