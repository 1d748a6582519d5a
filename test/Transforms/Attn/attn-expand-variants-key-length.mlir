// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep n < lengths[b]
// CHECK-LABEL: func @key_length(
// CHECK-SAME: %[[LENGTHS:[a-z0-9]+]]: tensor<?xindex>)
func.func @key_length(%q: !t, %k: !t, %lengths: tensor<?xindex>) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[LENGTH:.*]] = tensor.extract %[[LENGTHS]][%[[B]]] : tensor<?xindex>
  // CHECK-NEXT: arith.cmpi slt, %[[N]], %[[LENGTH]]
  %o = attn.attention %q, %k, %k variants [#attn.key_length] captures(%lengths : tensor<?xindex>) : !t, !t, !t -> !t
  return %o : !t
}
