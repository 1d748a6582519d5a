// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// Without a mask: whole tiles of constant size, then the ragged tail.
// CHECK-LABEL: func @no_mask(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<64x16xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %{{[a-z0-9]+}}: tensor<64xf32>)
func.func @no_mask(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: %[[TILES:.*]] = arith.divui %[[N]], %c32
  // CHECK: %[[WHOLE:.*]] = arith.muli %[[TILES]], %c32
  // CHECK: %[[UP:.*]] = arith.addi %[[N]], %c31
  // CHECK: %[[ALL:.*]] = arith.divui %[[UP]], %c32
  // CHECK: %[[END:.*]] = arith.muli %[[ALL]], %c32
  // CHECK: %[[F:.*]]:3 = scf.for %[[T:.*]] = %c0 to %[[WHOLE]] step %c32
  // CHECK-NEXT: tensor.extract_slice %{{.*}}[%[[T]], 0] [32, 16]
  // CHECK-NEXT: attn.online_attention
  // CHECK-NOT: mask
  // CHECK: %[[P:.*]]:3 = scf.for %{{.*}} = %[[WHOLE]] to %[[END]] step %c32 iter_args(%{{.*}} = %[[F]]#0,
  // CHECK: affine.min
  // CHECK: attn.online_attention
  // CHECK-NOT: scf.for
  // CHECK: return %[[P]]#0
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
