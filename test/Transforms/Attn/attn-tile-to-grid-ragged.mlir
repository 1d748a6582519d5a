// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// Tiles of rows end where their sequence does, and so do its keys; a tile without rows has no keys.
// CHECK-LABEL: func @ragged(
// CHECK-SAME:    %[[Q:[a-z0-9_]+]]: tensor<?x?x16xf32>, %[[K:[a-z0-9_]+]]: tensor<?x?x16xf32>, %[[A:[a-z0-9_]+]]: tensor<?xi32>, %[[C:[a-z0-9_]+]]: tensor<?xi32>, %[[M:.*]]: index, %[[N:.*]]: index)
// CHECK-DAG:     %[[ROWS:.*]] = attn.ragged %[[Q]][%[[A]]] up_to %[[M]]
// CHECK-DAG:     %[[KEYS:.*]] = attn.ragged %[[K]][%[[C]]] up_to %[[N]]
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:           tensor.extract %[[A]][%[[B]]]
// CHECK:           %[[COUNT:.*]] = arith.minui %{{.*}}, %[[M]] : index
// CHECK:           %[[REST:.*]] = arith.subi %[[COUNT]], %[[I]]
// CHECK:           %[[LEFT:.*]] = arith.maxsi %[[REST]], %c0
// CHECK:           %[[OWN:.*]] = affine.min #{{.*}}(%[[I]])[%[[LEFT]], %{{.*}}]
// CHECK:           tensor.extract_slice %[[ROWS]][%[[B]], %[[H]], %[[I]], 0] [1, 1, %[[OWN]], 16]
// CHECK:           tensor.extract %[[C]][%[[B]]]
// CHECK:           %[[HAS:.*]] = arith.cmpi sgt, %[[OWN]], %c0
// CHECK:           %[[ALL:.*]] = arith.select %[[HAS]], %{{.*}}, %c0
// CHECK:           tensor.extract_slice %[[KEYS]][%[[B]], %{{.*}}, 0, 0] [1, 1, %[[ALL]], 16]
// CHECK:           tensor.parallel_insert_slice %{{.*}} [1, 1, %[[OWN]], 16]
func.func @ragged(%rows_q: tensor<?x?x16xf32>, %rows_k: tensor<?x?x16xf32>, %a: tensor<?xi32>, %c: tensor<?xi32>, %m: index, %n: index) -> tensor<?x?x?x16xf32> {
  %q = attn.ragged %rows_q[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %k = attn.ragged %rows_k[%c] up_to %n : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// -----

func.func @one_row(%rows_q: tensor<?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %a: tensor<?xi32>, %m: index) -> tensor<?x?x?x16xf32> {
  %q = attn.ragged %rows_q[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  // expected-error@+1 {{expected tiles of more than one row of sequences}}
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 1, block_n = 32>} : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// -----

func.func @static_keys(%rows_q: tensor<?x?x16xf32>, %k: tensor<?x?x64x16xf32>, %a: tensor<?xi32>, %m: index) -> tensor<?x?x?x16xf32> {
  %q = attn.ragged %rows_q[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  // expected-error@+1 {{expected rows and keys of a dynamic number beside sequences}}
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<?x?x?x16xf32>, tensor<?x?x64x16xf32>, tensor<?x?x64x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}
