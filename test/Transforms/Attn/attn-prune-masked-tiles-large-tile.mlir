// RUN: attn-opt %s --attn-prune-masked-tiles | FileCheck %s

// Tiles of more rows than a schedule can have are left alone.
// CHECK-LABEL: func @large(
// CHECK: scf.for {{.*}} step %c2147483647
// CHECK-NOT: scf.for
func.func @large(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b: index, %n: index, %acc: tensor<64x16xf32>, %row: tensor<64xf32>) -> tensor<64x16xf32> {
  %c0 = arith.constant 0 : index
  %step = arith.constant 2147483647 : index
  %r:3 = scf.for %j = %c0 to %n step %step iter_args(%a = %acc, %m = %row, %s = %row) -> (tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>) {
    %t = tensor.extract_slice %k[%j, 0] [%step, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %o:3 = attn.online_attention %q, %t, %t scale(%scale) at(%b, %b, %b, %j) outs(%a, %m, %s)
      mask(%x, %h, %i, %l) {
        %keep = arith.cmpi sle, %l, %i : index
        attn.yield %keep : i1
      } : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
    scf.yield %o#0, %o#1, %o#2 : tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
  }
  return %r#0 : tensor<64x16xf32>
}
