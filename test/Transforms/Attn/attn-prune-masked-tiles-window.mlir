// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// A window has a partial range on either side of the full one.
// CHECK-LABEL: func @window(
func.func @window(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row, %left: index, %right: index) -> (!acc, !row, !row) {
  // CHECK: %[[L:.*]]:3 = scf.for %{{.*}} = %[[BEGIN:.*]] to %[[FB:.*]] step %c32
  // CHECK: mask(
  // CHECK: %[[F:.*]]:3 = scf.for %{{.*}} = %[[FB]] to %[[FE:.*]] step %c32 iter_args(%{{.*}} = %[[L]]#0,
  // CHECK-NEXT: tensor.extract_slice {{.*}} to tensor<32x16xf16>
  // CHECK-NOT: mask
  // CHECK: %[[P:.*]]:3 = scf.for %{{.*}} = %[[FE]] to %{{.*}} step %c32 iter_args(%{{.*}} = %[[F]]#0,
  // CHECK: mask(
  // CHECK: return %[[P]]#0
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %first = arith.subi %m, %left : index
          %above = arith.cmpi sge, %n1, %first : index
          %last = arith.addi %m, %right : index
          %below = arith.cmpi sle, %n1, %last : index
          %keep = arith.andi %above, %below : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
