// RUN: attn-opt %s --attn-prune-masked-tiles --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// Attention sinks and a window: two intervals of keys. The tiles between them are in the loop and passed over.
// CHECK-LABEL: func @sink_and_window(
func.func @sink_and_window(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row, %length: index, %left: index) -> (!acc, !row, !row) {
  // CHECK: scf.for %[[T:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[MAX:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}})
  // CHECK: %[[LIVE:.*]] = arith.ori
  // CHECK: %[[IF:.*]]:3 = scf.if %[[LIVE]]
  // CHECK: attn.online_attention
  // CHECK: mask(
  // CHECK: else
  // CHECK-NEXT: scf.yield %[[ACC]], %[[MAX]], %[[SUM]]
  // CHECK: scf.yield %[[IF]]#0, %[[IF]]#1, %[[IF]]#2
  // CHECK: scf.for
  // CHECK-NOT: scf.if
  // CHECK-NOT: mask
  // CHECK: scf.for
  // CHECK: scf.if
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %m, %n1) {
          %sinks = arith.cmpi slt, %n1, %length : index
          %first = arith.subi %m, %left : index
          %near = arith.cmpi sge, %n1, %first : index
          %causal = arith.cmpi sle, %n1, %m : index
          %window = arith.andi %near, %causal : i1
          %some = arith.ori %sinks, %window : i1
          %keep = arith.andi %some, %causal : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
