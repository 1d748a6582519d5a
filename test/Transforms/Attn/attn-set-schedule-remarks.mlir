// RUN: attn-opt %s --attn-set-schedule --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s
// RUN: attn-opt %s --attn-set-schedule="block-m=32" --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=OPTIONS

// A remark says which rule chose.
// CHECK: remark: [Passed] schedule | Category:attn | Remark="rule cpu-f32 chose block_m 64, block_n 64, splits 1"
// OPTIONS: remark: [Passed] schedule | Category:attn | Remark="rule options chose block_m 32, block_n 64, splits 1"
func.func @f32(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}
