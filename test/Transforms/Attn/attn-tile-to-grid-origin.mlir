// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// CHECK-DAG: #[[SUM:.*]] = affine_map<()[s0, s1] -> (s0 + s1)>
// An op that is elsewhere than at zeros: its position is added to the tile's.
// CHECK-LABEL: func @origin(
// CHECK-SAME: %[[ZERO:[a-z0-9]+]]: index, %[[FIRST:[a-z0-9]+]]: index)
func.func @origin(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>, %zero: index, %first: index) -> tensor<?x?x?x16xf16> {
  // CHECK: scf.forall (%{{.*}}, %{{.*}}, %[[T:.*]]) =
  // CHECK: %[[M:.*]] = affine.apply #[[SUM]]()[%[[FIRST]], %[[T]]]
  // CHECK: attn.attention {{.*}} at(%{{.*}}, %{{.*}}, %[[M]], %[[ZERO]])
  %o = attn.attention %q, %k, %k at(%zero, %zero, %first, %zero) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16> -> tensor<?x?x?x16xf16>
  return %o : tensor<?x?x?x16xf16>
}
