// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// A length read from memory is the same for the whole block: it is read once, outside the loop.
// CHECK-LABEL: func @key_length(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<64x16xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %[[LENGTHS:[a-z0-9]+]]: tensor<?xi32>)
func.func @key_length(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row, %lengths: tensor<?xi32>) -> (!acc, !row, !row) {
  // CHECK: %[[LENGTH:.*]] = tensor.extract %[[LENGTHS]]
  // CHECK: arith.maxsi %[[LENGTH]], %c-268500992_i32
  // CHECK: %[[NEAR:.*]] = arith.minsi %{{.*}}, %c268500992_i32
  // CHECK: %[[KEYS:.*]] = arith.index_cast %[[NEAR]] : i32 to index
  // CHECK: arith.minsi %[[N]], %[[KEYS]]
  // CHECK: %[[F:.*]]:3 = scf.for
  // CHECK-NOT: mask
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[F]]#0
  // CHECK: mask(
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %length = tensor.extract %lengths[%b] : tensor<?xi32>
          %end = arith.index_cast %length : i32 to index
          %keep = arith.cmpi slt, %n1, %end : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
