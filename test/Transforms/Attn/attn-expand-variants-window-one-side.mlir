// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// -1 is no bound.
// CHECK-LABEL: func @window_one_side(
func.func @window_one_side(%q: !t, %k: !t) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NOT: arith.subi
  // CHECK: %[[LAST:.*]] = arith.addi %[[M]], %c3
  // CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sle, %[[N]], %[[LAST]]
  // CHECK-NEXT: attn.yield %[[KEEP]]
  %o = attn.attention %q, %k, %k variants [#attn.window<-1, 3, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
