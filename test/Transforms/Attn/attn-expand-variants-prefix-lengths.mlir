// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep n < lengths[b] or n <= m
// CHECK-LABEL: func @prefix_lengths(
// CHECK-SAME: %[[LENGTHS:[a-z0-9]+]]: tensor<?xi32>)
func.func @prefix_lengths(%q: !t, %k: !t, %lengths: tensor<?xi32>) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[X:.*]] = tensor.extract %[[LENGTHS]][%[[B]]] : tensor<?xi32>
  // CHECK: %[[LENGTH:.*]] = arith.index_cast %[[X]] : i32 to index
  // CHECK: arith.cmpi slt, %[[N]], %[[LENGTH]]
  %o = attn.attention %q, %k, %k variants [#attn.prefix<-1, top_left>] captures(%lengths : tensor<?xi32>) : !t, !t, !t -> !t
  return %o : !t
}
