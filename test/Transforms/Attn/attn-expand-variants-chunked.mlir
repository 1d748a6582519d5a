// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>

// keep floor(n / 256) == floor(m / 256)
// CHECK-LABEL: func @chunked(
func.func @chunked(%q: !t, %k: !t) -> !t {
  // CHECK: mask(%[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[SIZE:.*]] = arith.constant 256
  // CHECK: %[[ROW:.*]] = arith.floordivsi %[[M]], %[[SIZE]]
  // CHECK: %[[KEY:.*]] = arith.floordivsi %[[N]], %[[SIZE]]
  // CHECK: arith.cmpi eq, %[[KEY]], %[[ROW]]
  %o = attn.attention %q, %k, %k variants [#attn.chunked<256, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
