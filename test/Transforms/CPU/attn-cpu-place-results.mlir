// RUN: attn-opt %s --attn-to-online="block-m=64 block-n=32" --attn-cpu-place-results --attn-cpu-read-views --canonicalize --cse --split-input-file | FileCheck %s

// Tiles of queries and keys are slices of the rows of all sequences, and results are inserted there. Both end with the
// sequence, so that nothing is counted again.
// CHECK-LABEL: func.func @sequences(
// CHECK-SAME:    %[[Q:[a-z0-9_]+]]: tensor<?x?x16xf32>, %[[K:[a-z0-9_]+]]: tensor<?x?x16xf32>, %{{.*}}: tensor<?x?x16xf32>, %[[A:[a-z0-9_]+]]: tensor<?xi32>,
// CHECK-NOT:     attn.ragged
// CHECK:         %[[ROWS:.*]] = tensor.empty(%{{.*}}, %{{.*}}) : tensor<?x?x16xf32>
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) = {{.*}} shared_outs(%[[OUT:.*]] = %[[ROWS]])
// CHECK:           %[[COUNT:.*]] = affine.min
// CHECK:           %[[ROW:.*]] = arith.addi %{{.*}}, %[[M]]
// CHECK:           tensor.extract_slice %[[Q]][%[[ROW]], %[[H]], 0] [%[[COUNT]], 1, 16] [1, 1, 1]
// CHECK:           tensor.extract_slice %[[K]][%{{.*}}, %{{.*}}, 0] [32, 1, 16] [1, 1, 1]
// CHECK:           %[[TILE:.*]] = attn.normalize
// CHECK:           tensor.parallel_insert_slice %[[TILE]] into %[[OUT]][%[[ROW]], %[[H]], 0] [%[[COUNT]], 1, 16] [1, 1, 1]
// CHECK-NOT:     attn.place
func.func @sequences(%rows_q: tensor<?x?x16xf32>, %rows_k: tensor<?x?x16xf32>, %rows_v: tensor<?x?x16xf32>, %a: tensor<?xi32>, %m: index) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %q = attn.ragged %rows_q[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %k = attn.ragged %rows_k[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %v = attn.ragged %rows_v[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %o = attn.attention %q, %k, %v : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  %t = tensor.dim %rows_q, %c0 : tensor<?x?x16xf32>
  %h = tensor.dim %rows_q, %c1 : tensor<?x?x16xf32>
  %empty = tensor.empty(%t, %h) : tensor<?x?x16xf32>
  %placed = attn.place %o[%a] into %empty : tensor<?x?x?x16xf32>, tensor<?xi32> -> tensor<?x?x16xf32>
  return %placed : tensor<?x?x16xf32>
}

// -----

// Rows of a dense query have another end than the sequences that take them: tiles are cut where they are inserted.
// CHECK-LABEL: func.func @dense(
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) =
// CHECK:           %[[TILE:.*]] = attn.normalize
// CHECK:           %[[REST:.*]] = arith.subi %{{.*}}, %[[M]]
// CHECK:           %[[LEFT:.*]] = arith.minsi %[[REST]], %{{.*}}
// CHECK:           %[[COUNT:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:           %[[PART:.*]] = tensor.extract_slice %[[TILE]][0, 0] [%[[COUNT]], 16] [1, 1]
// CHECK:           tensor.parallel_insert_slice %[[PART]] into %{{.*}}[%{{.*}}, %[[H]], 0] [%[[COUNT]], 1, 16] [1, 1, 1]
func.func @dense(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %a: tensor<?xi32>, %t: index, %h: index) -> tensor<?x?x16xf32> {
  %o = attn.attention %q, %k, %k : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  %empty = tensor.empty(%t, %h) : tensor<?x?x16xf32>
  %placed = attn.place %o[%a] into %empty : tensor<?x?x?x16xf32>, tensor<?xi32> -> tensor<?x?x16xf32>
  return %placed : tensor<?x?x16xf32>
}
