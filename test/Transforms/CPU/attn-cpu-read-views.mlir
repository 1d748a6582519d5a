// RUN: attn-opt %s --attn-to-online="block-m=64 block-n=32" --attn-cpu-read-views --canonicalize --split-input-file | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: attn-opt %s --attn-to-online="block-m=64 block-n=96" --attn-cpu-read-views --canonicalize --split-input-file | FileCheck %s --check-prefixes=CHECK,WIDE

// A page holds two tiles of 32 keys, each of which is a slice of the pool. Of tiles of 96 keys 32 lie in one page.
// CHECK-LABEL: func.func @pages(
// CHECK-SAME:    %{{.*}}: tensor<?x?x?x8xf32>, %[[K:.*]]: tensor<?x64x?x8xf32>, %[[V:.*]]: tensor<?x64x?x8xf32>, %[[T:.*]]: tensor<?x?xi32>)
// CHECK-NOT:     attn.paged
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %{{.*}}) =
// CHECK:           scf.for %[[N:.*]] = %c0 to
// NARROW:            %[[J:.*]] = arith.divui %[[N]], %c64
// NARROW:            %[[ENTRY:.*]] = tensor.extract %[[T]][%[[B]], %[[J]]]
// NARROW:            %[[PAGE:.*]] = arith.index_cast %[[ENTRY]]
// NARROW:            arith.minsi
// NARROW:            %[[LEGAL:.*]] = arith.maxsi
// NARROW:            %[[ROW:.*]] = arith.remui %[[N]], %c64
// NARROW:            tensor.extract_slice %[[K]][%[[LEGAL]], %[[ROW]], %{{.*}}, 0] [1, {{.*}}, 1, 8] [1, 1, 1, 1]
// NARROW-NOT:        tensor.insert_slice
// WIDE:              %[[TILE:.*]] = tensor.empty
// WIDE:              scf.for %[[R:.*]] = %c0 to %{{.*}} step %c32 iter_args(%[[SUM:.*]] = %[[TILE]])
// WIDE:                arith.addi %{{.*}}, %[[R]]
// WIDE:                tensor.extract_slice %[[K]][%{{.*}}, %{{.*}}, %{{.*}}, 0] [1, 32, 1, 8] [1, 1, 1, 1]
// WIDE:                tensor.insert_slice %{{.*}} into %[[SUM]][%[[R]], 0] [32, 8] [1, 1]
// CHECK:             attn.online_attention
func.func @pages(%q: tensor<?x?x?x8xf32>, %pool_k: tensor<?x64x?x8xf32>, %pool_v: tensor<?x64x?x8xf32>,
                 %table: tensor<?x?xi32>) -> tensor<?x?x?x8xf32> {
  %k = attn.paged %pool_k[%table] : tensor<?x64x?x8xf32>, tensor<?x?xi32> -> tensor<?x?x?x8xf32>
  %v = attn.paged %pool_v[%table] : tensor<?x64x?x8xf32>, tensor<?x?xi32> -> tensor<?x?x?x8xf32>
  %o = attn.attention %q, %k, %v : tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32> -> tensor<?x?x?x8xf32>
  return %o : tensor<?x?x?x8xf32>
}
