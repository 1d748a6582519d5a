// RUN: attn-opt %S/../../Pipelines/Inputs/causal128.mlir --attn-to-online=target=cuda --online-to-tile --tile-to-async | FileCheck %s

// CHECK:       role consumer
// The first scores have nothing to hide behind.
// CHECK:         tile.mma_async {{.*}} {transpose_rhs}
// CHECK:         tile.mma_wait 0
// In the loops, both products are in flight before the softmax, which runs beside the one with the values.
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = tile.mma_async {{.*}} {transpose_rhs}
// CHECK-NEXT:      tile.mma_commit
// CHECK-NOT:       tile.mma_wait
// CHECK:           %[[O:.*]] = tile.mma_async
// CHECK-NEXT:      tile.mma_commit
// CHECK:           tile.mma_wait 1, %[[S]]
// CHECK-NEXT:      tile.barrier_arrive
// CHECK-NOT:       arith.truncf
// CHECK:           %[[E:.*]] = math.exp2 {{.*}} : tensor<128x128xf32
// Weights are narrowed, and the accumulator scaled, when the product that reads the old ones is done.
// CHECK:           %[[DONE:.*]]:2 = tile.mma_wait 0, %[[O]], %[[E]]
// CHECK-NEXT:      tile.barrier_arrive
// CHECK-NEXT:      arith.truncf %[[DONE]]#1
// CHECK:           arith.mulf %[[DONE]]#0
// CHECK:           scf.yield
