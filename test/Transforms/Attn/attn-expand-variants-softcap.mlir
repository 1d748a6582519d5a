// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// 30 * tanh(s / 30)
// CHECK-LABEL: func @softcap(
func.func @softcap(%q: !t, %k: !t) -> !t {
  // CHECK: score(%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[INV:.*]] = arith.constant 0.0333333351 : f32
  // CHECK: %[[X:.*]] = arith.mulf %[[S]], %[[INV]]
  // CHECK: %[[TANH:.*]] = math.tanh %[[X]]
  // CHECK: %[[CAP:.*]] = arith.constant 3.000000e+01
  // CHECK: %[[R:.*]] = arith.mulf %[[TANH]], %[[CAP]]
  // CHECK-NEXT: attn.yield %[[R]] : f32
  %o = attn.attention %q, %k, %k variants [#attn.softcap<30.0 : f32>] : !t, !t, !t -> !t
  return %o : !t
}
