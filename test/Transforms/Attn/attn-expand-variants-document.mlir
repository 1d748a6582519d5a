// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep ids_q[b, m] == ids_k[b, n]
// CHECK-LABEL: func @document(
// CHECK-SAME: %[[IQ:[a-z0-9]+]]: tensor<?x?xi32>, %[[IK:[a-z0-9]+]]: tensor<?x?xi32>)
func.func @document(%q: !t, %k: !t, %iq: tensor<?x?xi32>, %ik: tensor<?x?xi32>) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[ROW:.*]] = tensor.extract %[[IQ]][%[[B]], %[[M]]]
  // CHECK-NEXT: %[[KEY:.*]] = tensor.extract %[[IK]][%[[B]], %[[N]]]
  // CHECK-NEXT: arith.cmpi eq, %[[ROW]], %[[KEY]] : i32
  %o = attn.attention %q, %k, %k variants [#attn.document] captures(%iq, %ik : tensor<?x?xi32>, tensor<?x?xi32>) : !t, !t, !t -> !t
  return %o : !t
}
