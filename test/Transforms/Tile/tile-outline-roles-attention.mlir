// RUN: attn-opt %S/../../Pipelines/Inputs/causal128.mlir --attn-to-online="target=cuda stay=false" --online-to-tile --tile-to-async | FileCheck %s

// One warpgroup more; two rings, whose empty barriers count the two consumer warpgroups.
// CHECK-LABEL: func.func @attention
// CHECK-SAME:    #tile.kernel<warpgroups = 3
// CHECK-DAG:     %[[QFULL:.*]] = tile.barrier_init 1 at {{.*}} : !tile.barrier<1>
// CHECK-DAG:     %[[FULL:.*]] = tile.barrier_init 1 at {{.*}} : !tile.barrier<2>
// CHECK-DAG:     %[[EMPTY:.*]] = tile.barrier_init 2 at {{.*}} : !tile.barrier<2>
// CHECK:         tile.sync
// The producer runs the copies and nothing on tiles.
// CHECK:         role producer warpgroups 1 registers 24 elected
// CHECK-NOT:       tensor<
// CHECK:           scf.for
// CHECK:             tile.barrier_wait previous
// CHECK-NEXT:        tile.barrier_expect {{.*}} bytes 32768
// CHECK:             tile.copy_async
// CHECK:             tile.next
// CHECK:         role consumer warpgroups 2 registers 240
// CHECK:           tile.barrier_wait
// CHECK:           scf.for
// CHECK:             tile.barrier_wait
// CHECK:             tile.mma_async {{.*}} {transpose_rhs}
// CHECK:             tile.mma_wait 0
// CHECK:             tile.barrier_arrive
// CHECK:             tile.mma_async
// CHECK:             tile.mma_wait 0
// CHECK:             tile.barrier_arrive
// CHECK:           tile.store
