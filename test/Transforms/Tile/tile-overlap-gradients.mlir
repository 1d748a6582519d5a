// RUN: attn-opt %s --attn-to-online="target=cuda fused=true" --online-to-tile --tile-to-async | FileCheck %s

!x = tensor<?x?x?x128xbf16>
!r = tensor<?x?x?xf32>

// Blocks of keys that add to gradients of queries. dS^T goes through a place of two stages, by the slot of the queries' ring, so that the
// warpgroups meet once a turn. dQ is done before dV and dK start, and goes to memory beside both, which are waited for together: ptxas
// serialises a product that lands among them.
// CHECK-LABEL: func.func @gradient_key_value
// CHECK:         %[[QUERIES:.*]] = tile.alloc_shared at {{.*}} : !tile.shared<64x128xbf16, swizzle = 128, stages = 2>
// CHECK:         %[[PLACE:.*]] = tile.alloc_shared at {{.*}} : !tile.shared<128x64xbf16, swizzle = 128, stages = 2>
// CHECK:       role consumer
// CHECK:         scf.for
// CHECK:           %[[TILE:.*]] = tile.stage %[[QUERIES]][%[[SLOT:.*]]] :
// CHECK:           %[[STAGE:.*]] = tile.stage %[[PLACE]][%[[SLOT]]]
// CHECK-NOT:       tile.named_barrier
// CHECK:           tile.store %{{.*}} to %[[STAGE]]
// CHECK-NEXT:      tile.fence async_shared
// CHECK-NEXT:      tile.named_barrier sync
// CHECK:           %[[DQ:.*]] = tile.mma_async %{{.*}}, %[[STAGE]] {transpose_lhs}
// CHECK:           %[[SUM:.*]] = tile.mma_wait 0, %[[DQ]]
// CHECK:           %[[DV:.*]] = tile.mma_async
// CHECK-NOT:       tile.mma_wait
// CHECK:           %[[DK:.*]] = tile.mma_async %{{.*}}, %[[TILE]],
// CHECK-NOT:       tile.mma_wait
// CHECK:           tile.store %[[SUM]] to %{{.*}} {add}
// CHECK:           tile.mma_wait 0, %[[DV]], %[[DK]]
// CHECK:           scf.yield
func.func @gradient(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r) -> (!x, !x, !x) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !x, !x, !x, !x, !r, !x -> d_query(!x) d_key(!x) d_value(!x)
  return %g#0, %g#1, %g#2 : !x, !x, !x
}

!y = tensor<?x?x?x64xbf16>

// Wide tiles under a mask have one stage: there are no registers for its address. The warpgroups meet before they store, too, and where a
// mask is, dV starts before dS is there.
// CHECK-LABEL: func.func @masked_key_value
// CHECK:         %[[ONE:.*]] = tile.alloc_shared at {{.*}} : !tile.shared<128x128xbf16, swizzle = 128>
// CHECK:       role consumer
// CHECK:         scf.for
// CHECK:           tile.mma_wait 0
// CHECK:           tile.named_barrier sync
// CHECK-NEXT:      tile.store %{{.*}} to %[[ONE]]
// CHECK-NEXT:      tile.fence async_shared
// CHECK-NEXT:      tile.named_barrier sync
// CHECK:           tile.add_async
func.func @masked(%q: !y, %k: !y, %v: !y, %do: !y, %o: !y, %lse: !r) -> (!y, !y, !y) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.causal<bottom_right>]
      : !y, !y, !y, !y, !r, !y -> d_query(!y) d_key(!y) d_value(!y)
  return %g#0, %g#1, %g#2 : !y, !y, !y
}
