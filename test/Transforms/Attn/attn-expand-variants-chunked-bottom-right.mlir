// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// Rows before the first key are negative: the division rounds down, not to zero.
// CHECK-LABEL: func @chunked_bottom_right(
func.func @chunked_bottom_right(%q: !t, %k: !t) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[ROW:.*]] = arith.addi %[[M]]
  // CHECK: arith.floordivsi %[[ROW]]
  %o = attn.attention %q, %k, %k variants [#attn.chunked<4, bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}
