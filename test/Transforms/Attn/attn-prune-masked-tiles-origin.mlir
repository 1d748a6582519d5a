// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// The first key is at a global position other than 0, as after attn-split-kv: bounds count from that key,
// the mask region still sees global positions.
// CHECK-LABEL: func @origin(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<64x16xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %{{[a-z0-9]+}}: tensor<64xf32>, %[[FIRST:[a-z0-9]+]]: index)
func.func @origin(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row, %first: index) -> (!acc, !row, !row) {
  // CHECK: %[[M1:.*]] = arith.addi %[[M0]], %c64
  // CHECK: %[[DROP:.*]] = arith.addi %[[M0]], %c1 :
  // CHECK: arith.maxsi %[[FIRST]], %c-268500992
  // CHECK: %[[NEAR:.*]] = arith.minsi %{{.*}}, %c268500992
  // CHECK: arith.subi %[[DROP]], %[[NEAR]]
  // CHECK: arith.subi %[[M1]], %[[NEAR]]
  // CHECK: scf.for
  // CHECK-NOT: mask
  // CHECK: scf.for %[[T:[a-z0-9]+]] =
  // CHECK: %[[AT:.*]] = affine.apply {{.*}}()[%[[FIRST]], %[[T]]]
  // CHECK: attn.online_attention {{.*}} at(%{{.*}}, %{{.*}}, %[[M0]], %[[AT]])
  // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[KEY:.*]]) {
  // CHECK-NEXT: arith.cmpi sle, %[[KEY]], %[[M]]
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %at = affine.apply affine_map<()[s0, s1] -> (s0 + s1)>()[%first, %n0]
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %at) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %keep = arith.cmpi sle, %n1, %m : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
