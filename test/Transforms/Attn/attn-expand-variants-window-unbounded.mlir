// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// No bound on either side keeps everything; canonicalization drops the mask.
// CHECK-LABEL: func @window_unbounded(
func.func @window_unbounded(%q: !t, %k: !t) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
  // CHECK-NEXT: attn.yield %[[TRUE]]
  %o = attn.attention %q, %k, %k variants [#attn.window<-1, -1, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
