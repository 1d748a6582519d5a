// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// s + bias[h, clamp(m - n + 5, 0, R - 1)]; R is computed in front of the op.
// CHECK-LABEL: func @relative_bias(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<?x?xbf16>)
func.func @relative_bias(%q: !t, %k: !t, %bias: tensor<?x?xbf16>) -> !t {
  // CHECK: %[[R:.*]] = tensor.dim %[[BIAS]], %c1
  // CHECK: attn.attention
  // CHECK: score(%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NOT: tensor.dim
  // CHECK: %[[LAST:.*]] = arith.subi %[[R]], %c1
  // CHECK: %[[D:.*]] = arith.subi %[[M]], %[[N]]
  // CHECK: %[[I:.*]] = arith.addi %[[D]], %c5
  // CHECK: %[[MIN:.*]] = arith.minsi %[[I]], %[[LAST]]
  // CHECK: %[[AT:.*]] = arith.maxsi %[[MIN]], %c0
  // CHECK: tensor.extract %[[BIAS]][%[[H]], %[[AT]]] : tensor<?x?xbf16>
  // CHECK: arith.extf
  // CHECK: arith.addf %[[S]],
  %o = attn.attention %q, %k, %k variants [#attn.relative_bias<5, top_left>] captures(%bias : tensor<?x?xbf16>) : !t, !t, !t -> !t
  return %o : !t
}
