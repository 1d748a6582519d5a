// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>


// Regions that are there already come first.
// CHECK-LABEL: func @after_regions(
func.func @after_regions(%q: !t, %k: !t, %x: f32) -> !t {
  // CHECK: score(%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[S]], %{{.*}}
  // CHECK: arith.mulf %[[SUM]],
  // CHECK: mask(
  // CHECK-NEXT: %[[OWN:.*]] = arith.cmpi ne
  // CHECK-NEXT: %[[CAUSAL:.*]] = arith.cmpi sle
  // CHECK-NEXT: arith.andi %[[OWN]], %[[CAUSAL]]
  %o = attn.attention %q, %k, %k variants [#attn.softcap<30.0 : f32>, #attn.causal<top_left>]
    score(%s, %b, %h, %m, %n) {
      %sum = arith.addf %s, %x : f32
      attn.yield %sum : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi ne, %m, %n : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
