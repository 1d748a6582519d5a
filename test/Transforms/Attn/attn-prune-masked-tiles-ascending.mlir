// RUN: attn-opt %s --attn-prune-masked-tiles=certain-first --canonicalize --cse | FileCheck %s

// With a fixed split tiles come from the first to the last. The first is certain to run, on its own; no tile begins where
// the rows of the head do, and what a mask leaves of it may be anything.
// CHECK-LABEL: func @window(
// CHECK: scf.if
// CHECK:   tensor.extract_slice %{{.*}}[%[[BEGIN:.*]], 0] [
// CHECK:   %[[ONE:.*]]:3 = attn.online_attention {{.*}} at({{.*}}, %[[BEGIN]])
// CHECK-NOT: attn.kept_keys
// CHECK:     mask
// CHECK:   %[[FROM:.*]] = arith.addi %[[BEGIN]], %c32
// CHECK:   %[[LEFT:.*]]:3 = scf.for %[[N0:.*]] = %[[FROM]] to %[[FULL_BEGIN:.*]] step %c32 iter_args(%{{.*}} = %[[ONE]]#0
// CHECK:     attn.online_attention {{.*}} at({{.*}}, %[[N0]])
// CHECK:       mask
// CHECK:   %[[SECOND:.*]] = arith.maxsi %[[FULL_BEGIN]], %[[FROM]]
// CHECK:   %[[FULL:.*]]:3 = scf.for %{{.*}} = %[[SECOND]] to %[[FULL_END:.*]] step %c32 iter_args(%{{.*}} = %[[LEFT]]#0
// CHECK:     attn.online_attention
// CHECK-NOT:   mask
// CHECK:   %[[THIRD:.*]] = arith.maxsi %[[FULL_END]], %[[FROM]]
// CHECK:   scf.for %{{.*}} = %[[THIRD]] to %{{.*}} step %c32 iter_args(%{{.*}} = %[[FULL]]#0
// CHECK:       mask
// CHECK: else
!acc = tensor<64x16xf32>
!row = tensor<64xf32>
func.func @window(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, fixed_split = 64>}
        mask(%b, %h, %i, %j) {
          %c100 = arith.constant 100 : index
          %end = arith.addi %j, %c100 : index
          %causal = arith.cmpi sle, %j, %i : index
          %near = arith.cmpi sle, %i, %end : index
          %keep = arith.andi %causal, %near : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}

// A short tile is the last one, after the whole ones.
// CHECK-LABEL: func @no_mask(
// CHECK: scf.if
// CHECK:   %[[ONE:.*]]:3 = attn.online_attention {{.*}} at({{.*}}, %c0)
// CHECK:   %[[FULL:.*]]:3 = scf.for %{{.*}} = %c32 to %{{.*}} step %c32 iter_args(%{{.*}} = %[[ONE]]#0
// CHECK:     tensor.extract_slice %{{.*}}[%{{.*}}, 0] [32, 16]
// CHECK:   scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c32 iter_args(%{{.*}} = %[[FULL]]#0
// CHECK:     affine.min
// CHECK: else
func.func @no_mask(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, fixed_split = 64>}
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
