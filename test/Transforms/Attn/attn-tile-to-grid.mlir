// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
// CHECK-DAG: #[[HEAD:.*]] = affine_map<()[s0, s1, s2] -> (s0 floordiv (s2 floordiv s1))>
// One block per batch, query head and 64 rows; it reads key head h / (H / Hkv) and all keys.
// CHECK-LABEL: func @grid(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x16xf16>, %[[K:[a-z0-9]+]]: tensor<?x?x?x16xf16>
func.func @grid(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>) -> tensor<?x?x?x16xf16> {
  // CHECK: %[[R:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) = (0, 0, 0) to (%[[NB:.*]], %[[NH:.*]], %[[NM:.*]]) step (1, 1, 64) shared_outs(%[[OUT:.*]] = %{{.*}})
  // CHECK-DAG: %[[SIZE:.*]] = affine.min #[[ROWS]](%[[M]])[%[[NM]]]
  // CHECK-DAG: %[[KH:.*]] = affine.apply #[[HEAD]]()[%[[H]], %{{.*}}, %[[NH]]]
  // CHECK: %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[M]], 0] [1, 1, %[[SIZE]], 16]
  // CHECK: %[[KT:.*]] = tensor.extract_slice %[[K]][%[[B]], %[[KH]], 0, 0] [1, 1, %{{.*}}, 16]
  // CHECK: %[[O:.*]] = attn.attention %[[QT]], %[[KT]], %{{.*}} at(%[[B]], %[[H]], %[[M]], %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
  // CHECK: tensor.parallel_insert_slice %[[O]] into %[[OUT]][%[[B]], %[[H]], %[[M]], 0] [1, 1, %[[SIZE]], 16]
  // CHECK: mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]
  // CHECK: return %[[R]]
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16> -> tensor<?x?x?x16xf16>
  return %o : tensor<?x?x?x16xf16>
}
