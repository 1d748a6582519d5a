// RUN: attn-opt %s --tile-outline-roles --canonicalize | FileCheck %s

!result = tensor<64x64xf32, #tile.acc<units = 1>>
!out = memref<?x64xf32, strided<[?, 1]>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

// Each role keeps its ops, the loop around them and what that carries for it; scalars before them are computed once.
// CHECK-LABEL: func.func @loop
// CHECK-SAME:    warpgroups = 2
// CHECK-NOT:     tile.roles
// CHECK:         %[[FULL:.*]] = tile.barrier_init 1
// CHECK:         %[[EMPTY:.*]] = tile.barrier_init 1
// CHECK:         %[[END:.*]] = arith.muli
// CHECK:         tile.sync
// CHECK-NEXT:    tile.specialize
// CHECK-NEXT:    role load warpgroups 1 registers 24 elected {
// CHECK:           scf.for {{.*}} to %[[END]] {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}) -> (!tile.slot<2>) {
// CHECK-NEXT:        tile.barrier_wait previous %[[EMPTY]][%[[SLOT]]] : !tile.barrier<2>
// CHECK-NEXT:        tile.barrier_expect %[[FULL]][%[[SLOT]]] bytes 64
// CHECK-NEXT:        tile.next
// CHECK-NEXT:        scf.yield
// CHECK:         role compute warpgroups 1 registers 240 {
// CHECK:           scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[SLOT:.*]] = %{{.*}}) -> (tensor<64x64xf32
// CHECK-NEXT:        tile.barrier_wait %[[FULL]][%[[SLOT]]] : !tile.barrier<2>
// CHECK-NEXT:        arith.addf %[[ACC]], %[[ACC]]
// CHECK-NEXT:        tile.barrier_arrive %[[EMPTY]][%[[SLOT]]] : !tile.barrier<2>
// CHECK:           tile.store
func.func @loop(%o: !out, %n: index, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  %fill0 = tile.slot : !tile.slot<2>
  %read0 = tile.slot : !tile.slot<2>
  %none = tile.broadcast %x : f32 -> !result
  %end = arith.muli %n, %n : index
  %r:3 = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %none, %fill = %fill0, %read = %read0) -> (!result, !tile.slot<2>, !tile.slot<2>) {
    tile.barrier_wait previous %empty[%fill] {tile.role = "load"} : !tile.barrier<2>
    tile.barrier_expect %full[%fill] bytes 64 {tile.role = "load"} : !tile.barrier<2>
    %fill_next = tile.next %fill : !tile.slot<2>
    tile.barrier_wait %full[%read] {tile.role = "compute"} : !tile.barrier<2>
    %twice = arith.addf %acc, %acc : !result
    tile.barrier_arrive %empty[%read] {tile.role = "compute"} : !tile.barrier<2>
    %read_next = tile.next %read : !tile.slot<2>
    scf.yield %twice, %fill_next, %read_next : !result, !tile.slot<2>, !tile.slot<2>
  }
  tile.store %r#0 to %o[%c0, %c0] {tile.role = "compute"} : !result, !out
  return
}

// Conditions, loops of other kinds, and a role that runs none of them.
// CHECK-LABEL: func.func @regions
// CHECK:         role load warpgroups 1 registers 24 elected {
// CHECK-NEXT:      scf.while (%[[I:.*]] = %{{.*}}) : (index) -> index {
// CHECK:             scf.condition(%{{.*}}) %[[I]] : index
// CHECK:             tile.barrier_expect
// CHECK:             %[[NEXT:.*]] = arith.addi
// CHECK-NEXT:        scf.yield %[[NEXT]] : index
// CHECK:         role compute warpgroups 1 registers 240 {
// CHECK:           %[[T:.*]] = scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (index, tensor<64x64xf32
// CHECK-NOT:         tile.barrier_expect
// CHECK:           tile.store
// CHECK:         role idle warpgroups 1 registers 24 {
// CHECK-NEXT:    }
func.func @regions(%o: !out, %n: index, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#load, #compute, #tile.role<name = "idle", warpgroups = 1, registers = 24>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %full = tile.barrier_init 1 : !tile.barrier<1>
  %none = tile.broadcast %x : f32 -> !result
  %r:2 = scf.while (%i = %c0, %acc = %none) : (index, !result) -> (index, !result) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %acc : index, !result
  } do {
  ^bb0(%i: index, %acc: !result):
    %odd = arith.cmpi eq, %i, %c1 : index
    scf.if %odd {
      tile.barrier_expect %full bytes 64 {tile.role = "load"} : !tile.barrier<1>
    }
    %twice = arith.addf %acc, %acc : !result
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %twice : index, !result
  }
  tile.store %r#1 to %o[%c0, %c0] {tile.role = "compute"} : !result, !out
  return
}
