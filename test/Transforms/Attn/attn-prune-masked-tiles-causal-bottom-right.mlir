// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// As top_left, shifted by a run-time scalar (N - M), which may be negative: the bounds are clamped to 0. It may be any number:
// what is beyond all positions is made to be just beyond them, so that no sum wraps.
// CHECK-LABEL: func @bottom_right(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<64x16xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %[[SHIFT:[a-z0-9]+]]: index)
func.func @bottom_right(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row, %shift: index) -> (!acc, !row, !row) {
  // CHECK: %[[LEAST:.*]] = arith.maxsi %[[SHIFT]], %c-268500992
  // CHECK: %[[NEAR:.*]] = arith.minsi %[[LEAST]], %c268500992
  // CHECK: arith.addi %[[M0]], %[[NEAR]]
  // CHECK: %[[LOW:.*]] = arith.maxsi %{{.*}}, %c0
  // CHECK: %[[MIN:.*]] = arith.minsi %[[N]], %[[LOW]]
  // CHECK: %[[FT:.*]] = arith.divui %[[MIN]], %c32
  // CHECK: %[[FULL:.*]] = arith.muli %[[FT]], %c32
  // CHECK: %[[MOST:.*]] = arith.minsi %[[N]], %{{.*}}
  // CHECK: %[[LAST:.*]] = arith.maxsi %[[MOST]], %c0
  // CHECK: %[[F:.*]]:3 = scf.for %[[T:.*]] = %c0 to %[[FULL]] step %c32
  // CHECK-NEXT: tensor.extract_slice %{{.*}}[%[[T]], 0] [32, 16]
  // CHECK-NEXT: attn.online_attention
  // CHECK-NOT: mask
  // CHECK: %[[P:.*]]:3 = scf.for %[[T:.*]] = %[[FULL]] to %{{.*}} step %c32 iter_args(%{{.*}} = %[[F]]#0,
  // CHECK: affine.min
  // CHECK: mask(
  // CHECK-NOT: scf.for
  // CHECK: return %[[P]]#0
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %row = arith.addi %m, %shift : index
          %keep = arith.cmpi sle, %n1, %row : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
