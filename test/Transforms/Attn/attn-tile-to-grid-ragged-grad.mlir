// RUN: attn-opt %s --attn-expand-variants --attn-split-grad --attn-set-schedule --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// Tiles of rows and of keys end where their sequence does, and what runs past them too: queries, their gradients and the
// numbers of rows, which grids before have left.
// CHECK-LABEL: func @gradient(
// CHECK-SAME:    %[[Q:[a-z0-9_]+]]: tensor<?x?x16xf32>, %[[K:[a-z0-9_]+]]: tensor<?x?x16xf32>, %[[L:[a-z0-9_]+]]: tensor<?x?xf32>, %[[A:[a-z0-9_]+]]: tensor<?xi32>, %[[C:[a-z0-9_]+]]: tensor<?xi32>
// CHECK-DAG:     %[[ROWS:.*]] = attn.ragged %[[Q]][%[[A]]] up_to %[[M:.*]] :
// CHECK-DAG:     %[[KEYS:.*]] = attn.ragged %[[K]][%[[C]]] up_to
// CHECK-DAG:     %[[LSE:.*]] = attn.ragged %[[L]][%[[A]]] up_to %[[M]] : tensor<?x?xf32>
// CHECK:         scf.forall
// CHECK:           %[[OWN:.*]] = affine.min
// CHECK:           tensor.extract_slice %[[ROWS]][%{{.*}}] [1, 1, %[[OWN]], 16]
// CHECK:           tensor.extract_slice %[[LSE]][%{{.*}}] [1, 1, %[[OWN]]]
// CHECK:           attn.row_delta
// CHECK:         scf.forall
// CHECK:           %[[OWN:.*]] = affine.min
// CHECK:           tensor.extract_slice %[[ROWS]][%{{.*}}] [1, 1, %[[OWN]], 16]
// CHECK:           %[[HAS:.*]] = arith.cmpi sgt, %[[OWN]], %c0
// CHECK:           %[[ALL:.*]] = arith.select %[[HAS]], %{{.*}}, %c0
// CHECK:           tensor.extract_slice %[[KEYS]][%{{.*}}] [1, 1, %[[ALL]], 16]
// CHECK:           attn.attention_grad_query
// CHECK:         scf.forall
// CHECK:           %[[OWN:.*]] = affine.min
// CHECK:           %[[HAS:.*]] = arith.cmpi sgt, %[[OWN]], %c0
// CHECK:           %[[ALL:.*]] = arith.select %[[HAS]], %{{.*}}, %c0
// CHECK:           tensor.extract_slice %[[ROWS]][%{{.*}}] [1, %{{.*}}, %[[ALL]], 16]
// CHECK:           tensor.extract_slice %[[KEYS]][%{{.*}}] [1, 1, %[[OWN]], 16]
// CHECK:           tensor.extract_slice %{{.*}} [1, %{{.*}}, %[[ALL]]]
// CHECK:           attn.attention_grad_key_value
func.func @gradient(%rows: tensor<?x?x16xf32>, %keys: tensor<?x?x16xf32>, %logs: tensor<?x?xf32>, %a: tensor<?xi32>, %c: tensor<?xi32>, %m: index, %n: index)
    -> (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>) {
  %q = attn.ragged %rows[%a] up_to %m : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %k = attn.ragged %keys[%c] up_to %n : tensor<?x?x16xf32>, tensor<?xi32> -> tensor<?x?x?x16xf32>
  %l = attn.ragged %logs[%a] up_to %m : tensor<?x?xf32>, tensor<?xi32> -> tensor<?x?x?xf32>
  %dq, %dk, %dv = attn.attention_grad %q, %k, %k, %q, %l, %q
    : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?xf32>, tensor<?x?x?x16xf32>
    -> d_query(tensor<?x?x?x16xf32>) d_key(tensor<?x?x?x16xf32>) d_value(tensor<?x?x?x16xf32>)
  return %dq, %dk, %dv : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>
}
