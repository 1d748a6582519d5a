// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep n <= m + N - M: the last row meets the last key
// CHECK-LABEL: func @causal_bottom_right(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x16xf16>, %[[K:[a-z0-9]+]]: tensor<?x?x?x16xf16>)
func.func @causal_bottom_right(%q: !t, %k: !t) -> !t {
  // CHECK: %[[ROWS:.*]] = tensor.dim %[[Q]], %c2
  // CHECK: %[[KEYS:.*]] = tensor.dim %[[K]], %c2
  // CHECK-NOT: variants
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[SHIFT:.*]] = arith.subi %[[KEYS]], %[[ROWS]]
  // CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[M]], %[[SHIFT]]
  // CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sle, %[[N]], %[[ROW]]
  // CHECK-NEXT: attn.yield %[[KEEP]]
  %o = attn.attention %q, %k, %k variants [#attn.causal<bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}
