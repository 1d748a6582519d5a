// RUN: attn-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize | FileCheck %s

// Sizes of results come from the operands: the output's rows are the query's.
// CHECK-LABEL: func @attention(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x64xf16>
func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x32xf16>) -> (index, index, index) {
  // CHECK-DAG: %[[M:.*]] = tensor.dim %[[Q]], %c2
  // CHECK-DAG: %[[H:.*]] = tensor.dim %[[Q]], %c1
  // CHECK: return %[[M]], %c32, %[[H]]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %o, %lse = attn.attention %q, %k, %v : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x32xf16> -> tensor<?x?x?x32xf16>, tensor<?x?x?xf32>
  %m = tensor.dim %o, %c2 : tensor<?x?x?x32xf16>
  %dv = tensor.dim %o, %c3 : tensor<?x?x?x32xf16>
  %h = tensor.dim %lse, %c1 : tensor<?x?x?xf32>
  return %m, %dv, %h : index, index, index
}

// A destination-style op's are those of its destinations.
// CHECK-LABEL: func @merge(
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<?x16xf32>)
func.func @merge(%p: tensor<4x?x16xf32>, %l: tensor<4x?xf32>, %o: tensor<?x16xf32>) -> index {
  // CHECK: %[[ROWS:.*]] = tensor.dim %[[O]], %c0
  // CHECK: return %[[ROWS]]
  %c0 = arith.constant 0 : index
  %r = attn.merge %p, %l outs(%o) : tensor<4x?x16xf32>, tensor<4x?xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %rows = tensor.dim %r, %c0 : tensor<?x16xf32>
  return %rows : index
}
