// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// A prefix that all rows see, then causal: full up to max(length, m0 + 1), kept up to max(length, m0 + 64).
// CHECK-LABEL: func @prefix(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<64x16xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %[[LENGTH:[a-z0-9]+]]: index)
func.func @prefix(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row, %length: index) -> (!acc, !row, !row) {
  // CHECK: arith.maxsi %[[LENGTH]], %c-268500992
  // CHECK: %[[NEAR:.*]] = arith.minsi %{{.*}}, %c268500992
  // CHECK: %[[DROP:.*]] = arith.addi %[[M0]], %c1 :
  // CHECK: %[[MAX:.*]] = arith.maxsi %[[NEAR]], %[[DROP]]
  // CHECK: %[[MIN:.*]] = arith.minsi %[[N]], %[[MAX]]
  // CHECK: %[[FT:.*]] = arith.divui %[[MIN]], %c32
  // CHECK: %[[FULL:.*]] = arith.muli %[[FT]], %c32
  // CHECK: %[[F:.*]]:3 = scf.for %[[T:.*]] = %c0 to %[[FULL]] step %c32
  // CHECK-NEXT: tensor.extract_slice %{{.*}}[%[[T]], 0] [32, 16]
  // CHECK-NEXT: attn.online_attention
  // CHECK-NOT: mask
  // CHECK: %[[P:.*]]:3 = scf.for %[[T:.*]] = %[[FULL]] to %{{.*}} step %c32 iter_args(%{{.*}} = %[[F]]#0,
  // CHECK: affine.min
  // CHECK: mask(
  // CHECK: return %[[P]]#0
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %inside = arith.cmpi slt, %n1, %length : index
          %causal = arith.cmpi sle, %n1, %m : index
          %keep = arith.ori %inside, %causal : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
