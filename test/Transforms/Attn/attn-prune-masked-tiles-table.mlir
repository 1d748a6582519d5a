// RUN: attn-opt %s --attn-tile-kv-loop --attn-prune-masked-tiles --canonicalize --cse \
// RUN:   --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

!m = tensor<?x16xf32>
!row = tensor<?xf32>
!keys = tensor<64x16xf32>

// Rows of a sorted table whose elements attn-widen-indices bounded, far beyond all positions: a search finds the first that keeps a key, and compares
// elements as they are. A bound that a position may reach decides: elements with one are not searched.
// CHECK: remark: [Analysis] mask-tiles | Category:attn | Remark="keeps m >= first(t0 >= n0 + s1 - s2); drops m < first(t0 >= n1 + s1 - s2 - 1)"
// CHECK: remark: [Analysis] mask-tiles | Category:attn | Remark="mask cannot be decided by tile: it is applied everywhere"
// CHECK-LABEL: func @rows(
// CHECK: %[[ELEMENT:.*]] = tensor.extract %{{.*}} : tensor<?xi32>
// CHECK-NOT: arith.maxsi %[[ELEMENT]]
// CHECK: arith.cmpi slt, %[[ELEMENT]], %{{.*}} : i32
// CHECK: %[[L:.*]]:2 = scf.for %{{.*}} = %{{.*}} to %[[FULL:.*]] step %c32
// CHECK: attn.grad_key_value_step
// CHECK: mask(
// CHECK: scf.for %{{.*}} = %[[FULL]] to %{{.*}} step %c32 iter_args(%{{.*}} = %[[L]]#0,
// CHECK: attn.grad_key_value_step
// CHECK-NOT: mask(
// CHECK: scf.for
// CHECK: mask(
func.func @rows(%n0: index, %q: !m, %r: !row, %k: !keys, %c: f32, %b0: index, %h0: index, %acc: !keys, %places: tensor<?xi32>, %rows: index, %keys: index)
    -> (!keys, !keys) {
  %c0 = arith.constant 0 : index
  %most = arith.constant 268435456 : index
  %table = attn.assume nondecreasing %places : tensor<?xi32>
  %m0 = arith.maxsi %rows, %c0 : index
  %total_m = arith.minsi %m0, %most : index
  %k0 = arith.maxsi %keys, %c0 : index
  %total_n = arith.minsi %k0, %most : index
  %d:2 = attn.grad_key_value_step %q, %k, %k, %q, %r, %r scale(%c) at(%b0, %h0, %c0, %n0) outs(%acc, %acc)
    {attn.schedule = #attn.schedule<block_m = 32, block_n = 64>}
    mask(%b, %h, %m, %n) {
      %least = arith.constant -1073676288 : i32
      %greatest = arith.constant 1073676288 : i32
      %element = tensor.extract %table[%m] : tensor<?xi32>
      %raised = arith.maxsi %element, %least : i32
      %bounded = arith.minsi %raised, %greatest : i32
      %row = arith.index_cast %bounded : i32 to index
      %shift = arith.subi %total_n, %total_m : index
      %aligned = arith.addi %row, %shift : index
      %keep = arith.cmpi sle, %n, %aligned : index
      attn.yield %keep : i1
    } : !m, !keys, !keys, !m, !row, !row, !keys, !keys -> !keys, !keys
  return %d#0, %d#1 : !keys, !keys
}

// CHECK-LABEL: func @near(
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @near(%n0: index, %q: !m, %r: !row, %k: !keys, %c: f32, %b0: index, %h0: index, %acc: !keys, %places: tensor<?xi32>) -> (!keys, !keys) {
  %c0 = arith.constant 0 : index
  %table = attn.assume nondecreasing %places : tensor<?xi32>
  %d:2 = attn.grad_key_value_step %q, %k, %k, %q, %r, %r scale(%c) at(%b0, %h0, %c0, %n0) outs(%acc, %acc)
    {attn.schedule = #attn.schedule<block_m = 32, block_n = 64>}
    mask(%b, %h, %m, %n) {
      %least = arith.constant 5 : index
      %greatest = arith.constant 5000 : index
      %element = tensor.extract %table[%m] : tensor<?xi32>
      %row = arith.index_cast %element : i32 to index
      %raised = arith.maxsi %row, %least : index
      %bounded = arith.minsi %raised, %greatest : index
      %shifted = arith.addi %bounded, %least : index
      %keep = arith.cmpi sle, %n, %shifted : index
      attn.yield %keep : i1
    } : !m, !keys, !keys, !m, !row, !row, !keys, !keys -> !keys, !keys
  return %d#0, %d#1 : !keys, !keys
}
