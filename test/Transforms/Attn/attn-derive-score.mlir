// RUN: attn-opt %s --attn-expand-variants --attn-derive-score --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>
!slopes = tensor<?xbf16>

// The score is computed again from S; what its adjoint does not need is left out. A read becomes a contribution, in f32
// whatever the tensor's type.
// CHECK-LABEL: func @softcap_alibi(
// CHECK-SAME: %[[SLOPES:[a-z0-9]+]]: tensor<?xbf16>
func.func @softcap_alibi(%q: !t, %l: !row, %slopes: !slopes) -> (!t, tensor<?xf32>) {
  // CHECK: grad(%[[S:[a-z0-9]+]], %[[DT:[a-z0-9]+]], %{{.*}}, %[[H:[a-z0-9]+]], %[[M:[a-z0-9]+]], %[[N:[a-z0-9]+]]) {
  // CHECK-NEXT: %[[X:.*]] = arith.mulf %[[S]], %[[RECIPROCAL:.*]] : f32
  // CHECK-NEXT: %[[Y:.*]] = math.tanh %[[X]]
  // CHECK-NOT: tensor.extract
  // CHECK: %[[DISTANCE:.*]] = math.absf
  // CHECK-NEXT: %[[MINUS:.*]] = arith.negf %[[DT]]
  // CHECK-NEXT: %[[SLOPE:.*]] = arith.mulf %[[MINUS]], %[[DISTANCE]]
  // CHECK-NEXT: attn.contribute %[[SLOPE]] to %[[SLOPES]][%[[H]]] : tensor<?xbf16>
  // CHECK-NEXT: %[[DY:.*]] = arith.mulf %[[DT]], %{{.*}}
  // CHECK-NEXT: %[[YY:.*]] = arith.mulf %[[Y]], %[[Y]]
  // CHECK-NEXT: %[[SECH:.*]] = arith.subf %{{.*}}, %[[YY]]
  // CHECK-NEXT: %[[DX:.*]] = arith.mulf %[[DY]], %[[SECH]]
  // CHECK-NEXT: %[[DS:.*]] = arith.mulf %[[DX]], %[[RECIPROCAL]]
  // CHECK-NEXT: attn.yield %[[DS]]
  %dq, %dw = attn.attention_grad %q, %q, %q, %q, %l, %q variants [#attn.softcap<20.0>, #attn.alibi<top_left>]
    captures(%slopes : !slopes) wrt(%slopes : !slopes) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_wrt(tensor<?xf32>)
  return %dq, %dw : !t, tensor<?xf32>
}

// Without a score the adjoint of the score is that of its result, which no region has to say.
// CHECK-LABEL: func @identity(
func.func @identity(%q: !t, %l: !row) -> !t {
  // CHECK-NOT: grad(
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q variants [#attn.causal<top_left>] : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// What is written by hand stays.
// CHECK-LABEL: func @own(
func.func @own(%q: !t, %l: !row) -> !t {
  // CHECK: grad(%{{[a-z0-9]+}}, %[[DT:[a-z0-9]+]],
  // CHECK-NEXT: attn.yield %[[DT]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.roundeven %s : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}
