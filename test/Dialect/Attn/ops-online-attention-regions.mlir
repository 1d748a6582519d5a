// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!row = tensor<8xf32>
!acc = tensor<8x16xf32>

// CHECK-LABEL: func @regions(
func.func @regions(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK: attn.online_attention
  // CHECK: score(
  // CHECK: mask(
  // CHECK: : tensor<8x64xf16>, tensor<4x64xf16>
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    score(%s, %b, %h, %m, %n) {
      %t = math.absf %s : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi slt, %n, %m : index
      attn.yield %keep : i1
    } : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, !acc, !row, !row -> !acc, !row, !row
  return %r#0 : !acc
}
