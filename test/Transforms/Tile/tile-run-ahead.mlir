// RUN: attn-opt %s --split-input-file --tile-run-ahead | FileCheck %s

!global = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
#acc = #tile.acc<units = 4, product = "mma.sync">
!sum = tensor<64x64xf32, #acc>

module attributes {plan.target = #plan.target<"sm_80">} {

// Values come at the head of their turn, and keys in the turn before theirs.
// CHECK-LABEL: func.func @one_stage
// CHECK:         %[[N:.*]] = memref.dim
// CHECK:         tile.copy_share %{{.*}}[%c0, %c0] to %[[Q:[a-z0-9_]+]]
// CHECK:         scf.if
// CHECK-NEXT:      tile.copy_share %[[K:arg1]][%c0, %c0] to %[[KEYS:[a-z0-9_]+]]
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[N]] step %c64
// CHECK-NEXT:      tile.copy_wait
// CHECK-NEXT:      tile.sync
// CHECK-NEXT:      tile.copy_share %arg2[%[[I]], %c0] to %[[VALUES:[a-z0-9_]+]]
// CHECK-NEXT:      %[[S:.*]] = tile.mma %[[Q]], %[[KEYS]]
// CHECK:           tile.copy_wait
// CHECK-NEXT:      tile.sync
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[I]], %c64
// CHECK-NEXT:      %[[HAS:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK-NEXT:      scf.if %[[HAS]] {
// CHECK-NEXT:        tile.copy_share %[[K]][%[[NEXT]], %c0] to %[[KEYS]]
// CHECK:           tile.convert_layout
// CHECK-NEXT:      tile.mma %{{.*}}, %[[VALUES]]
func.func @one_stage(%q: !global, %k: !global, %v: !global, %o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %query = tile.alloc_shared : !tile
  %keys = tile.alloc_shared : !tile
  %values = tile.alloc_shared : !tile
  %n = memref.dim %k, %c0 : !global
  %start = tile.broadcast %zero : f32 -> !sum
  tile.copy %q[%c0, %c0] to %query : !global, !tile
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %start) -> (!sum) {
    tile.copy %k[%i, %c0] to %keys : !global, !tile
    %s = tile.mma %query, %keys {transpose_rhs} : !tile, !tile -> !sum
    %p = arith.truncf %s : !sum to tensor<64x64xbf16, #acc>
    tile.copy %v[%i, %c0] to %values : !global, !tile
    %a = tile.convert_layout %p : tensor<64x64xbf16, #acc> -> tensor<64x64xbf16, #tile.operand_a<units = 4, product = "mma.sync">>
    %next = tile.mma %a, %values, %acc : tensor<64x64xbf16, #tile.operand_a<units = 4, product = "mma.sync">>, !tile, !sum -> !sum
    scf.yield %next : !sum
  }
  tile.store %sum to %o[%c0, %c0] : !sum, !out
  return
}

// With two stages everything comes in the turn before, and threads meet once.
// CHECK-LABEL: func.func @two_stages
// CHECK:         %[[FIRST:.*]] = tile.slot : !tile.slot<2>
// CHECK-DAG:     %[[KEYS:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK-DAG:     %[[VALUES:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK:         scf.if
// CHECK:           tile.stage %[[KEYS]][%[[FIRST]]]
// CHECK:           tile.stage %[[VALUES]][%[[FIRST]]]
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %[[FIRST]])
// CHECK-NEXT:      tile.copy_wait
// CHECK-NEXT:      tile.sync
// CHECK-NEXT:      %[[K:.*]] = tile.stage %[[KEYS]][%[[SLOT]]]
// CHECK-NEXT:      %[[AFTER:.*]] = tile.next %[[SLOT]]
// CHECK-NEXT:      %[[V:.*]] = tile.stage %[[VALUES]][%[[SLOT]]]
// CHECK:           scf.if
// CHECK:             %[[TO:.*]] = tile.stage %[[KEYS]][%[[AFTER]]]
// CHECK-NEXT:        tile.copy_share %{{.*}} to %[[TO]]
// CHECK:           tile.mma %{{.*}}, %[[K]]
// CHECK-NOT:       tile.sync
// CHECK:           tile.mma %{{.*}}, %[[V]]
// CHECK:           %[[LAST:.*]] = tile.next %[[SLOT]]
// CHECK-NEXT:      scf.yield %{{.*}}, %[[LAST]]
func.func @two_stages(%q: !global, %k: !global, %v: !global, %o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %query = tile.alloc_shared : !tile
  %keys = tile.alloc_shared : !tile
  %values = tile.alloc_shared : !tile
  %n = memref.dim %k, %c0 : !global
  %start = tile.broadcast %zero : f32 -> !sum
  tile.copy %q[%c0, %c0] to %query : !global, !tile
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %start) -> (!sum) {
    tile.copy %k[%i, %c0] to %keys : !global, !tile
    %s = tile.mma %query, %keys {transpose_rhs} : !tile, !tile -> !sum
    %p = arith.truncf %s : !sum to tensor<64x64xbf16, #acc>
    tile.copy %v[%i, %c0] to %values : !global, !tile
    %a = tile.convert_layout %p : tensor<64x64xbf16, #acc> -> tensor<64x64xbf16, #tile.operand_a<units = 4, product = "mma.sync">>
    %next = tile.mma %a, %values, %acc : tensor<64x64xbf16, #tile.operand_a<units = 4, product = "mma.sync">>, !tile, !sum -> !sum
    scf.yield %next : !sum
  }
  tile.store %sum to %o[%c0, %c0] : !sum, !out
  return
}

// What threads store is read after a meeting, and stored again after another one.
// CHECK-LABEL: func.func @stored
// CHECK:         scf.for
// CHECK-NEXT:      tile.sync
// CHECK-NEXT:      tile.store
// CHECK-NEXT:      tile.sync
// CHECK-NEXT:      tile.mma
func.func @stored(%w: tensor<64x64xbf16, #acc>, %n: index, %o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %place = tile.alloc_shared : !tile
  %start = tile.broadcast %zero : f32 -> !sum
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> (!sum) {
    tile.store %w to %place : tensor<64x64xbf16, #acc>, !tile
    %next = tile.mma %place, %place, %acc {transpose_lhs} : !tile, !tile, !sum -> !sum
    scf.yield %next : !sum
  }
  tile.store %sum to %o[%c0, %c0] : !sum, !out
  return
}

}
