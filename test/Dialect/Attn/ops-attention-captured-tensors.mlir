// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// Regions read tensors from outside: one element, at positions or at indices made from them.
// CHECK-LABEL: func @captured(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[IDS:[a-z0-9]+]]: tensor<?xi32>)
func.func @captured(%q: !t, %k: !t, %v: !t, %bias: tensor<?x?x?xf32>, %ids: tensor<?xi32>) -> !t {
  // CHECK: score(%{{.*}}, %{{.*}}, %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: tensor.extract %[[BIAS]][%[[H]], %[[M]], %[[N]]]
  // CHECK: mask(
  // CHECK: tensor.extract %[[IDS]]
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%h, %m, %n] : tensor<?x?x?xf32>
      %sum = arith.addf %s, %x : f32
      attn.yield %sum : f32
    }
    mask(%b, %h, %m, %n) {
      %row = tensor.extract %ids[%m] : tensor<?xi32>
      %key = tensor.extract %ids[%n] : tensor<?xi32>
      %keep = arith.cmpi eq, %row, %key : i32
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
