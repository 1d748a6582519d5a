// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// A block of 64 rows lies in one chunk of 256 keys or in two: the bounds are multiples of 256 around its rows.
// CHECK-LABEL: func @chunked(
func.func @chunked(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: scf.for
  // CHECK: mask(
  // CHECK: scf.for
  // CHECK-NEXT: tensor.extract_slice {{.*}} to tensor<32x16xf16>
  // CHECK-NOT: mask
  // CHECK: scf.for
  // CHECK: mask(
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %size1 = arith.constant 256 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %row = arith.floordivsi %m, %size1 : index
          %key = arith.floordivsi %n1, %size1 : index
          %keep = arith.cmpi eq, %row, %key : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
