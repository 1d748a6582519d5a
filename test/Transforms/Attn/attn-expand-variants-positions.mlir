// RUN: attn-opt %s --attn-expand-variants --split-input-file | FileCheck %s

!t = tensor<?x?x?x16xf16>

// Rows stand where a table says, keys from an origin on; M and N are those of the whole.
// CHECK-LABEL: func @rows_and_keys(
// CHECK-SAME: %[[ROWS:[a-z0-9]+]]: tensor<?xi32>, %[[FIRST:[a-z0-9]+]]: tensor<1xi64>, %[[TOTAL:[a-z0-9]+]]: tensor<2xindex>)
func.func @rows_and_keys(%q: !t, %rows: tensor<?xi32>, %first: tensor<1xi64>, %total: tensor<2xindex>) -> !t {
  // CHECK: %[[SORTED:.*]] = attn.assume nondecreasing %[[ROWS]]
  // CHECK: %[[FIRST64:.*]] = tensor.extract %[[FIRST]]
  // CHECK: %[[N0:.*]] = arith.index_cast %[[FIRST64]] : i64 to index
  // CHECK: %[[LOW:.*]] = arith.maxsi %[[N0]], %{{.*}} : index
  // CHECK: %[[ORIGIN:.*]] = arith.minsi %[[LOW]], %{{.*}} : index
  // CHECK: tensor.extract %[[TOTAL]]
  // CHECK: %[[TOTAL_M:.*]] = arith.minsi
  // CHECK: tensor.extract %[[TOTAL]]
  // CHECK: %[[TOTAL_N:.*]] = arith.minsi
  // CHECK: attn.attention
  // CHECK-NOT: variants
  // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[ROW:.*]] = tensor.extract %[[SORTED]][%[[M]]] : tensor<?xi32>
  // CHECK-NEXT: %[[AT_M:.*]] = arith.index_cast %[[ROW]] : i32 to index
  // CHECK-NEXT: %[[AT_N:.*]] = arith.addi %[[N]], %[[ORIGIN]] : index
  // CHECK-NEXT: %[[SHIFT:.*]] = arith.subi %[[TOTAL_N]], %[[TOTAL_M]] : index
  // CHECK-NEXT: %[[OWN:.*]] = arith.addi %[[AT_M]], %[[SHIFT]] : index
  // CHECK-NEXT: arith.cmpi sle, %[[AT_N]], %[[OWN]] : index
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>]
    captures(%rows, %first, %total : tensor<?xi32>, tensor<1xi64>, tensor<2xindex>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xf16>

// Regions that are there see the same positions, and what they do not ask for is not computed.
// CHECK-LABEL: func @regions(
// CHECK-SAME: %[[HEADS:[a-z0-9]+]]: tensor<?xi32>, %[[KEYS:[a-z0-9]+]]: tensor<?xindex>
func.func @regions(%q: !t, %heads: tensor<?xi32>, %keys: tensor<?xindex>, %total: tensor<2xi32>, %bias: tensor<?x?xf32>) -> !t {
  // CHECK-NOT: attn.assume nondecreasing %[[HEADS]]
  // CHECK: %[[SORTED:.*]] = attn.assume nondecreasing %[[KEYS]]
  // CHECK: score(%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[HEAD:.*]] = tensor.extract %[[HEADS]][%[[H]]]
  // CHECK-NEXT: %[[AT_H:.*]] = arith.index_cast %[[HEAD]]
  // CHECK-NEXT: %[[AT_N:.*]] = tensor.extract %[[SORTED]][%[[N]]]
  // CHECK-NEXT: tensor.extract %{{.*}}[%[[AT_H]], %[[AT_N]]]
  // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %{{.*}}) {
  // CHECK-NEXT: %[[TWO:.*]] = arith.constant 2
  // CHECK-NEXT: arith.cmpi sge, %[[M]], %[[TWO]]
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, table, own, table>]
    captures(%heads, %keys, %total : tensor<?xi32>, tensor<?xindex>, tensor<2xi32>)
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%h, %n] : tensor<?x?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %two = arith.constant 2 : index
      %keep = arith.cmpi sge, %m, %two : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xf16>

// A read at the op's own row and at the key of the whole, and one the other way round.
// CHECK-LABEL: func @own(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<?x?xf32>
func.func @own(%q: !t, %rows: tensor<?xi32>, %first: tensor<1xi32>, %total: tensor<2xi32>, %bias: tensor<?x?xf32>) -> !t {
  // CHECK: score(%{{.*}}, %{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
  // CHECK: %[[ROW:.*]] = tensor.extract %{{.*}}[%[[M]]] : tensor<?xi32>
  // CHECK: %[[AT_M:.*]] = arith.index_cast %[[ROW]]
  // CHECK: %[[AT_N:.*]] = arith.addi %[[N]]
  // CHECK-NEXT: tensor.extract %[[BIAS]][%[[M]], %[[AT_N]]] : tensor<?x?xf32>
  // CHECK-NEXT: tensor.extract %[[BIAS]][%[[AT_M]], %[[N]]] : tensor<?x?xf32>
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, origin>]
    captures(%rows, %first, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>)
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%m, %n] {attn.own = array<i64: 0>} : tensor<?x?xf32>
      %y = tensor.extract %bias[%m, %n] {attn.own = array<i64: 1>} : tensor<?x?xf32>
      %t = arith.addf %x, %y : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
