// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// Three whole tiles of 100 keys and one of 4: the second loop has one iteration and unrolls.
// CHECK-LABEL: func @static(
func.func @static(%q: tensor<64x16xf16>, %k: tensor<100x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: %[[F:.*]]:3 = scf.for %{{.*}} = %c0 to %c96 step %c32
  // CHECK: tensor.extract_slice {{.*}}[96, 0] [4, 16]
  // CHECK: attn.online_attention {{.*}} at({{.*}}, %c96) outs(%[[F]]#0, %[[F]]#1, %[[F]]#2)
  // CHECK-NOT: scf.for
  // CHECK: return
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %cn = arith.constant 100 : index
  %r:3 = scf.for %n0 = %c0 to %cn step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%cn]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<100x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
