// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep n < 32 or n <= m
// CHECK-LABEL: func @prefix(
func.func @prefix(%q: !t, %k: !t) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[CAUSAL:.*]] = arith.cmpi sle, %[[N]], %[[M]]
  // CHECK: %[[PREFIX:.*]] = arith.cmpi slt, %[[N]], %c32
  // CHECK: %[[KEEP:.*]] = arith.ori %[[PREFIX]], %[[CAUSAL]]
  // CHECK-NEXT: attn.yield %[[KEEP]]
  %o = attn.attention %q, %k, %k variants [#attn.prefix<32, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
