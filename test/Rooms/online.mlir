// RUN: attn-opt %s --attn-verify-room=room=online | FileCheck %s

// CHECK-LABEL: func @online(
func.func @online(%q: tensor<8x16xf16>, %scale: f32, %acc: tensor<8x16xf32>, %row: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // CHECK: attn.online_attention
  // CHECK: attn.normalize
  %s:3 = attn.online_attention %q, %q, %q scale(%scale) outs(%acc, %row, %row)
    : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  %r = attn.normalize %s#0, %s#1, %s#2 outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}
