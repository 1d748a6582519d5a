// RUN: attn-opt %s --attn-to-online="target=cuda apart=true" --online-to-tile --tile-to-async | FileCheck %s

// The first warpgroup passes over tiles above its diagonal, in a loop that leaves products to the other one; behind it the loop over
// tiles that the mask cuts is still certain to run, so that the product with values is late by one turn. The producer loads all.
// CHECK:       role producer
// CHECK-NOT:     tile.warpgroup
// CHECK:       role consumer
// CHECK:         %[[NUMBER:.*]] = tile.warpgroup
// CHECK-NEXT:    %[[IS_FIRST:.*]] = arith.cmpi {{eq|ult}}, %[[NUMBER]],
// CHECK-NEXT:    %[[BEGIN:.*]] = arith.select %[[IS_FIRST]], %{{.*}}, %[[ALL:.*]] : index
// CHECK:         scf.for %{{.*}} = %[[ALL]] to %[[BEGIN]]
// CHECK-COUNT-2:   tile.barrier_arrive
// CHECK:           scf.yield
// CHECK:         scf.for %[[I:.*]] = %[[BEGIN]] to
// CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi ne, %[[I]], %[[BEGIN]]
// CHECK-NEXT:      scf.if %[[MORE]]
// CHECK:             tile.mma_async
// CHECK:           tile.mma_async
// CHECK:         scf.for
func.func @attention(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>] : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}
