// RUN: attn-opt %s --attn-tile-kv-loop --attn-prune-masked-tiles --canonicalize --cse \
// RUN:   --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

!m = tensor<?x16xf32>
!row = tensor<?xf32>
!keys = tensor<64x16xf32>

// Rows before the first key of the block keep none of its keys; those behind its last keep all.
// CHECK: remark: [Analysis] mask-tiles | Category:attn | Remark="keeps m >= n0; drops m < n1 - 1"
// CHECK-LABEL: func @causal(
// CHECK-SAME: %[[N0:[a-z0-9]+]]: index, %[[Q:[a-z0-9]+]]: tensor<?x16xf32>
func.func @causal(%n0: index, %q: !m, %r: !row, %k: !keys, %c: f32, %b0: index, %h0: index, %acc: !keys) -> (!keys, !keys) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[L:.*]]:2 = scf.for %[[T:.*]] = %[[BEGIN:.*]] to %[[FULL:.*]] step %c32 iter_args
  // CHECK: attn.grad_key_value_step
  // CHECK: mask(
  // CHECK: %[[F:.*]]:2 = scf.for %[[T:.*]] = %[[FULL]] to %[[FULLEND:.*]] step %c32 iter_args(%{{.*}} = %[[L]]#0,
  // CHECK: tensor.extract_slice %[[Q]][%[[T]], 0] [32, 16]
  // CHECK: tensor.extract_slice %{{.*}}[%[[T]]] [32]
  // CHECK: attn.grad_key_value_step {{.*}} at(%{{.*}}, %{{.*}}, %[[T]], %[[N0]])
  // CHECK-NOT: mask(
  // CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %[[FULLEND]] to %{{.*}} step %c32 iter_args(%{{.*}} = %[[F]]#0,
  // CHECK: mask(
  // CHECK: return %[[R]]#0, %[[R]]#1
  %d:2 = attn.grad_key_value_step %q, %k, %k, %q, %r, %r scale(%c) at(%b0, %h0, %c0, %n0) outs(%acc, %acc)
    {attn.schedule = #attn.schedule<block_m = 32, block_n = 64>}
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !m, !keys, !keys, !m, !row, !row, !keys, !keys -> !keys, !keys
  return %d#0, %d#1 : !keys, !keys
}
