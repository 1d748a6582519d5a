// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// s - slopes[h] * |m - n|
// CHECK-LABEL: func @alibi(
// CHECK-SAME: %[[SLOPES:[a-z0-9]+]]: tensor<?xf32>)
func.func @alibi(%q: !t, %k: !t, %slopes: tensor<?xf32>) -> !t {
  // CHECK: score(%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[SLOPE:.*]] = tensor.extract %[[SLOPES]][%[[H]]] : tensor<?xf32>
  // CHECK: %[[D:.*]] = arith.subi %[[M]], %[[N]]
  // CHECK: %[[ABS:.*]] = math.absf
  // CHECK: %[[BIAS:.*]] = arith.mulf %[[SLOPE]], %[[ABS]]
  // CHECK: arith.subf %[[S]], %[[BIAS]]
  %o = attn.attention %q, %k, %k variants [#attn.alibi<top_left>] captures(%slopes : tensor<?xf32>) : !t, !t, !t -> !t
  return %o : !t
}
