// RUN: attn-opt %s --attn-online-softmax --attn-split-kv --canonicalize | FileCheck %s

// CHECK-DAG: #[[BEGIN:.*]] = affine_map<()[s0, s1] -> (s0 * ((s1 ceildiv 96) * 32), s1)>
// CHECK-DAG: #[[SIZE:.*]] = affine_map<()[s0, s1] -> ((s0 ceildiv 96) * 32, s0 - s1)>
// Three parts of whole key tiles, the last one shorter; each writes a normalized partial and its log-sum-exp.
// CHECK-LABEL: func @split(
func.func @split(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>) {
  // CHECK: %[[P:.*]] = tensor.empty() : tensor<3x2x2x128x16xf32>
  // CHECK: %[[L:.*]] = tensor.empty() : tensor<3x2x2x128xf32>
  // CHECK: %[[PARTS:.*]]:2 = scf.forall (%[[PART:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]]) = (0, 0, 0, 0) to (3, 2, 2, 128) step (1, 1, 1, 64) shared_outs(%[[PO:.*]] = %[[P]], %[[LO:.*]] = %[[L]])
  // CHECK: %[[FIRST:.*]] = affine.min #[[BEGIN]]()[%[[PART]], %{{.*}}]
  // CHECK: %[[KEYS:.*]] = affine.min #[[SIZE]]()[%{{.*}}, %[[FIRST]]]
  // CHECK: tensor.extract_slice %{{.*}}[%[[FIRST]], 0] [%[[KEYS]], 16]
  // CHECK: attn.online_attention {{.*}} at(%[[B]], %[[H]], %[[M]], %[[FIRST]])
  // CHECK: %[[N:.*]]:2 = attn.normalize {{.*}} -> tensor<64x16xf32>, tensor<64xf32>
  // CHECK: tensor.parallel_insert_slice %[[N]]#0 into %[[PO]][%[[PART]], %[[B]], %[[H]], %[[M]], 0] [1, 1, 1, 64, 16]
  // CHECK: tensor.parallel_insert_slice %[[N]]#1 into %[[LO]][%[[PART]], %[[B]], %[[H]], %[[M]]] [1, 1, 1, 64]
  // CHECK: scf.forall (%[[B2:.*]], %[[H2:.*]], %[[M2:.*]]) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64)
  // CHECK: tensor.extract_slice %[[PARTS]]#0[0, %[[B2]], %[[H2]], %[[M2]], 0] [3, 1, 1, 64, 16]
  // CHECK: tensor.extract_slice %[[PARTS]]#1[0, %[[B2]], %[[H2]], %[[M2]]] [3, 1, 1, 64]
  // CHECK: attn.merge {{.*}} : tensor<3x1x1x64x16xf32>, tensor<3x1x1x64xf32>, tensor<1x1x64x16xf16>
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
