// RUN: attn-opt %s --attn-prune-masked-tiles --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

// Outside of a loop over key tiles there is nothing to prune.
// CHECK: remark: [Missed] mask-tiles | Category:attn | Remark="not in a loop made by attn-tile-kv-loop: no tile is pruned"
// CHECK-LABEL: func @alone(
func.func @alone(%q: tensor<8x16xf16>, %scale: f32, %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) -> tensor<8x16xf32> {
  // CHECK: attn.online_attention
  // CHECK: mask(
  %r:3 = attn.online_attention %q, %q, %q scale(%scale) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return %r#0 : tensor<8x16xf32>
}
