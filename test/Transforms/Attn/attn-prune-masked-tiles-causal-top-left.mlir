// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// The closed form of a causal mask. Full tiles end at floor(min(m0 + 1, N) / 32) * 32 and carry no mask;
// tiles with a kept key end at ceil(min(m0 + 64, N) / 32) * 32.
// CHECK-LABEL: func @top_left(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<64x16xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %{{[a-z0-9]+}}: tensor<64xf32>)
func.func @top_left(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK-DAG: %[[M1:.*]] = arith.addi %[[M0]], %c64
  // CHECK-DAG: %[[DROP:.*]] = arith.addi %[[M0]], %c1 :
  // CHECK: %[[MIN:.*]] = arith.minsi %[[N]], %[[DROP]]
  // CHECK: %[[FT:.*]] = arith.divui %[[MIN]], %c32
  // CHECK: %[[FULL:.*]] = arith.muli %[[FT]], %c32
  // CHECK: %[[LAST:.*]] = arith.minsi %[[M1]], %[[N]]
  // CHECK: %[[UP:.*]] = arith.addi %[[LAST]], %c31
  // CHECK: %[[ET:.*]] = arith.divui %[[UP]], %c32
  // CHECK: %[[END:.*]] = arith.muli %[[ET]], %c32
  // CHECK: %[[F:.*]]:3 = scf.for %[[T:.*]] = %c0 to %[[FULL]] step %c32
  // CHECK-NEXT: tensor.extract_slice %{{.*}}[%[[T]], 0] [32, 16]
  // CHECK-NEXT: attn.online_attention
  // CHECK-NOT: mask
  // CHECK: %[[P:.*]]:3 = scf.for %[[T:.*]] = %[[FULL]] to %[[END]] step %c32 iter_args(%{{.*}} = %[[F]]#0,
  // CHECK: affine.min
  // CHECK: mask(
  // CHECK-NOT: scf.for
  // CHECK: return %[[P]]#0, %[[P]]#1, %[[P]]#2
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %keep = arith.cmpi sle, %n1, %m : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
