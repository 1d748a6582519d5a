// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// The head's sink goes with the block; the log-sum-exp is a second result of the grid.
// CHECK-LABEL: func @lse_sink(
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: tensor<?xf32>)
func.func @lse_sink(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>, %sink: tensor<?xf32>) -> (tensor<?x?x?x16xf16>, tensor<?x?x?xf32>) {
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) = {{.*}} shared_outs(%[[O:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
  // CHECK: %[[S:.*]] = tensor.extract_slice %[[SINK]][%[[H]]] [1] [1] : tensor<?xf32> to tensor<1xf32>
  // CHECK: %[[OT:.*]], %[[LT:.*]] = attn.attention {{.*}} sink(%[[S]] : tensor<1xf32>)
  // CHECK: tensor.parallel_insert_slice %[[OT]] into %[[O]]
  // CHECK: tensor.parallel_insert_slice %[[LT]] into %[[L]][%[[B]], %[[H]], %[[M]]] [1, 1, %{{.*}}]
  %o, %l = attn.attention %q, %k, %k sink(%sink : tensor<?xf32>) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16> -> tensor<?x?x?x16xf16>, tensor<?x?x?xf32>
  return %o, %l : tensor<?x?x?x16xf16>, tensor<?x?x?xf32>
}
