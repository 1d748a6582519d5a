// RUN: attn-opt %s --attn-derive-score --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>
!table = tensor<?x?xf32>
!static = tensor<8x8xf32>

// Each read of a table has a contribution of its own; a table that is not in wrt has none.
// CHECK: remark: [Missed] derive-score | Category:attn | Remark="no score moves with tensor 1 of wrt: its gradient is zeros"
// CHECK-LABEL: func @two_reads(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?xf32>, %[[Y:[a-z0-9]+]]: tensor<?x?xf32>, %[[Z:[a-z0-9]+]]: tensor<?x?xf32>
func.func @two_reads(%q: !t, %l: !row, %x: !table, %y: !table, %z: !table) -> (!table, !table) {
  // CHECK: grad(%{{.*}}, %[[DT:[a-z0-9]+]], %{{[a-z0-9]+}}, %[[H:[a-z0-9]+]], %[[M:[a-z0-9]+]], %[[N:[a-z0-9]+]])
  // CHECK: %[[R:.*]] = tensor.extract %[[Y]]
  // CHECK: %[[C:.*]] = arith.mulf %[[DT]], %[[R]]
  // CHECK: attn.contribute %[[C]] to %[[X]][%[[H]], %[[N]]]
  // CHECK: attn.contribute %[[DT]] to %[[X]][%[[H]], %[[M]]]
  // CHECK-NOT: attn.contribute
  %d:2 = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x, %z : !table, !table)
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h, %m] : !table
      %c = tensor.extract %x[%h, %n] : !table
      %e = tensor.extract %y[%h, %n] : !table
      %p = arith.mulf %c, %e : f32
      %u = arith.addf %s, %a : f32
      %t = arith.addf %u, %p : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_wrt(!table, !table)
  return %d#0, %d#1 : !table, !table
}

// A cast forgets extents only.
// CHECK-LABEL: func @cast(
func.func @cast(%q: !t, %l: !row, %x: !static) -> !table {
  // CHECK: %[[CAST:.*]] = tensor.cast
  // CHECK: grad(
  // CHECK: attn.contribute %{{.*}} to %[[CAST]][
  %cast = tensor.cast %x : !static to !table
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%cast : !table)
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h, %n] : !static
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_wrt(!table)
  return %d : !table
}

// A read in front of the op is one of the score's: CSE takes those of regions there.
// CHECK-LABEL: func @in_front(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<f32>, %[[Y:[a-z0-9]+]]: tensor<f32>
func.func @in_front(%q: !t, %l: !row, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  // CHECK: %[[OTHER:.*]] = tensor.extract %[[Y]]
  // CHECK: grad(%{{[a-z0-9]+}}, %[[DT:[a-z0-9]+]],
  // CHECK: %[[D:.*]] = arith.mulf %[[DT]], %[[OTHER]]
  // CHECK: %[[SUM:.*]] = arith.addf %[[DT]], %[[D]]
  // CHECK: attn.contribute %[[SUM]] to %[[X]][]
  // CHECK-NOT: attn.contribute
  // CHECK: attn.yield
  %read = tensor.extract %x[] : tensor<f32>
  %other = tensor.extract %y[] : tensor<f32>
  %scaled = arith.mulf %read, %other : f32
  %sum = arith.addf %scaled, %read : f32
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : tensor<f32>)
    score(%s, %b, %h, %m, %n) {
      %t = arith.addf %s, %sum : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_wrt(tensor<f32>)
  return %d : tensor<f32>
}
