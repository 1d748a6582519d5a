// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep m - 7 <= n <= m + 3
// CHECK-LABEL: func @window(
func.func @window(%q: !t, %k: !t) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[FIRST:.*]] = arith.subi %[[M]], %c7
  // CHECK: %[[ABOVE:.*]] = arith.cmpi sge, %[[N]], %[[FIRST]]
  // CHECK: %[[LAST:.*]] = arith.addi %[[M]], %c3
  // CHECK: %[[BELOW:.*]] = arith.cmpi sle, %[[N]], %[[LAST]]
  // CHECK: %[[KEEP:.*]] = arith.andi %[[ABOVE]], %[[BELOW]]
  // CHECK-NEXT: attn.yield %[[KEEP]]
  %o = attn.attention %q, %k, %k variants [#attn.window<7, 3, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
