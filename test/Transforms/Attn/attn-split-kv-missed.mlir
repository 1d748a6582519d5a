// RUN: attn-opt %s --attn-split-kv --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

// The state does not end in a grid: it is left alone.
// CHECK: remark: [Missed] split-kv | Category:attn | Remark="keys are not split: the results do not leave the grid directly"
// CHECK-LABEL: func @alone(
func.func @alone(%q: tensor<8x16xf16>, %scale: f32, %acc: tensor<8x16xf32>, %row: tensor<8xf32>) -> tensor<8x16xf32> {
  // CHECK: attn.online_attention
  // CHECK-NOT: attn.merge
  %r:3 = attn.online_attention %q, %q, %q scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>}
    : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return %r#0 : tensor<8x16xf32>
}
