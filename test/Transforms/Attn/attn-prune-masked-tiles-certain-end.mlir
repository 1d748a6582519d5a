// RUN: attn-opt %s --attn-prune-masked-tiles=certain-first --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ANY

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// Targets that multiply whole tiles end partial ones with the last key that is kept, not with the last that is there.
// CHECK-LABEL: func @length(
// CHECK-SAME: %[[N:[a-z0-9]+]]: index, %[[LENGTH:[a-z0-9]+]]: index)
// CHECK: arith.maxsi %[[LENGTH]], %c-268500992
// CHECK: %[[NEAR:.*]] = arith.minsi %{{.*}}, %c268500992
// CHECK: %[[LAST:.*]] = arith.minsi %[[N]], %[[NEAR]]
// WHOLE: %[[END:.*]] = arith.maxsi %[[LAST]], %c0
// WHOLE: affine.min #{{.*}}(%{{.*}})[%[[END]]]
// ANY: affine.min #{{.*}}(%{{.*}})[%[[N]]]
func.func @length(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %acc: !acc, %max: !row, %sum: !row, %b0: index, %h0: index,
    %m0: index, %n: index, %length: index) -> (!acc, !row, !row) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %keep = arith.cmpi slt, %n1, %length : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
