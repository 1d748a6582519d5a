// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>
!row = tensor<?x?x?xf32>

// g15: rows in base 2; one that keeps nothing has -inf.
// CHECK-LABEL: func @rows(
// CHECK-SAME: %{{.*}}: tensor<?x?x?x16xf32>, %[[L:[a-z0-9]+]]: tensor<?x?x?xf32>
func.func @rows(%o: !t, %l: !row) -> (!row, !row) {
  // CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
  // CHECK-DAG: %[[FACTOR:.*]] = arith.constant -1.44269502 : f32
  // CHECK: linalg.generic {{.*}} ins(%[[L]] :
  // CHECK:   arith.mulf %{{.*}}, %[[FACTOR]]
  // CHECK:   arith.select %{{.*}}, %[[LOWEST]],
  %n, %d = attn.row_delta %o, %o, %l d_lse(%l : !row) : !t, !t, !row -> !row, !row
  return %n, %d : !row, !row
}

// CHECK-LABEL: func @passes(
func.func @passes(%q: !t, %n: !row, %d: !row, %c: f32) -> (!t, !t, !t) {
  // CHECK: math.exp2
  %dq = attn.attention_grad_query %q, %q, %q, %q, %n, %d : !t, !t, !t, !t, !row, !row -> d_query(!t)
  // CHECK: math.exp2
  %dk, %dv = attn.attention_grad_key_value %q, %q, %q, %q, %n, %d scale(%c) : !t, !t, !t, !t, !row, !row -> d_key(!t) d_value(!t)
  // CHECK-NOT: attn.
  return %dq, %dk, %dv : !t, !t, !t
}
