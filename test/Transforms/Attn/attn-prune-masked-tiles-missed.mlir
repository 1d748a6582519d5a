// RUN: attn-opt %s --attn-prune-masked-tiles --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

// Outside of a loop over key tiles there is nothing to prune.
// CHECK: remark: [Missed] mask-tiles | Category:attn | Remark="not in a loop made by attn-tile-kv-loop: no tile is pruned"
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

// Keys that are not where the loop is, but twice as far.
// CHECK-LABEL: func @stretched(
func.func @stretched(%q: tensor<8x16xf16>, %k: tensor<64x16xf16>, %scale: f32, %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) -> tensor<8x16xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  // CHECK: scf.for
  // CHECK-NOT: scf.for
  %r:3 = scf.for %n = %c0 to %c64 step %c8 iter_args(%a = %acc, %b = %max, %c = %sum) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) {
    %kt = tensor.extract_slice %k[%n, 0] [8, 16] [1, 1] : tensor<64x16xf16> to tensor<8x16xf16>
    %p = affine.apply affine_map<(d0) -> (d0 * 2)>(%n)
    %s:3 = attn.online_attention %q, %kt, %kt scale(%scale) at(%c0, %c0, %c0, %p) outs(%a, %b, %c)
      mask(%bb, %hh, %mm, %nn) {
        %keep = arith.cmpi sle, %nn, %mm : index
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
    scf.yield %s#0, %s#1, %s#2 : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8x16xf32>
}
