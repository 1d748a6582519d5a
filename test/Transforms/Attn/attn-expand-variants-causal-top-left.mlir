// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep n <= m
// CHECK-LABEL: func @causal_top_left(
func.func @causal_top_left(%q: !t, %k: !t) -> !t {
  // CHECK-NOT: variants
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sle, %[[N]], %[[M]] : index
  // CHECK-NEXT: attn.yield %[[KEEP]] : i1
  %o = attn.attention %q, %k, %k variants [#attn.causal<top_left>] : !t, !t, !t -> !t
  return %o : !t
}
