// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// Captured tensors are not sliced: regions read them at global positions, which `at` gives.
// CHECK-LABEL: func @captures(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<?x?xf32>)
func.func @captures(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>, %bias: tensor<?x?xf32>) -> tensor<?x?x?x16xf16> {
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) =
  // CHECK: attn.attention {{.*}} at(%[[B]], %[[H]], %[[M]], %c0)
  // CHECK: score(%{{.*}}, %{{.*}}, %[[SH:.*]], %[[SM:.*]], %{{.*}}) {
  // CHECK-NEXT: tensor.extract %[[BIAS]][%[[SH]], %[[SM]]]
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%h, %m] : tensor<?x?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    } : tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16> -> tensor<?x?x?x16xf16>
  return %o : tensor<?x?x?x16xf16>
}
