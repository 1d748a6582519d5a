// RUN: attn-opt %s --attn-online-softmax --attn-split-kv --canonicalize | FileCheck %s

// Three parts of what 64 rows keep with a window of 200 keys: from the first row's first key to the last row's last.
// CHECK-DAG:   #[[BEFORE:.*]] = affine_map<()[s0, s1] -> (s0 * ((s1 ceildiv 96) * 32), s1)>
// CHECK-DAG:   #[[KEYS:.*]] = affine_map<()[s0, s1] -> ((s0 ceildiv 96) * 32, s0 - s1)>
// CHECK-DAG:   #[[SUM:.*]] = affine_map<()[s0, s1] -> (s0 + s1)>
// CHECK-LABEL: func.func @window(
// CHECK:         scf.forall (%[[PART:.*]], %{{.*}}, %{{.*}}, %[[M:[a-z0-9]*]]) =
// CHECK:           %[[N:.*]] = tensor.dim
// CHECK:           %[[LOW:.*]] = arith.subi %[[M]], %c200
// CHECK:           %[[FROM:.*]] = arith.maxsi %[[LOW]], %c0
// CHECK:           %[[BEGIN:.*]] = arith.select %[[ANY:.*]], %[[FROM]], %c0
// CHECK:           %[[END:.*]] = arith.select %[[ANY]],
// CHECK:           %[[LIVE:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK:           %[[FIRST:.*]] = affine.min #[[BEFORE]]()[%[[PART]], %[[LIVE]]]
// CHECK:           %[[REST:.*]] = affine.min #[[KEYS]]()[%[[LIVE]], %[[FIRST]]]
// CHECK:           %[[SKIPPED:.*]] = affine.apply #[[SUM]]()[%[[BEGIN]], %[[FIRST]]]
// CHECK:           %[[AT:.*]] = arith.minui %[[SKIPPED]], %[[N]]
// CHECK:           tensor.extract_slice %{{.*}}[%[[AT]], 0] [%[[REST]], 16]
// CHECK:           attn.online_attention {{.*}} at(%{{.*}}, %{{.*}}, %[[M]], %[[AT]])
func.func @window(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>}
      mask(%b, %h, %m, %n1) {
        %c200 = arith.constant 200 : index
        %low = arith.subi %m, %c200 : index
        %near = arith.cmpi sge, %n1, %low : index
        %past = arith.cmpi sle, %n1, %m : index
        %keep = arith.andi %near, %past : i1
        attn.yield %keep : i1
      }
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
