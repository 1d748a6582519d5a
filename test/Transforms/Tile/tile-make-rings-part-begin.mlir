// RUN: attn-opt %s --tile-make-rings --split-input-file | FileCheck %s --check-prefixes=RINGS
// RUN: attn-opt %s --tile-make-rings --tile-outline-roles --canonicalize --split-input-file | FileCheck %s --check-prefixes=ROLES

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!rows = !tile.shared<128x64xbf16, swizzle = 128>
!result = tensor<128x64xf32, #tile.acc<units = 2>>
!half = tensor<128x64xbf16, #tile.acc<units = 2>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 2, registers = 240>

// Turns that a warpgroup passes over are loaded for the other one: it waits for what it would have read, also under a condition, and
// gives it back when all of its warps have seen it. Slots go on behind.
// RINGS-LABEL: func.func @late
// RINGS:         %[[V_FULL:.*]] = tile.barrier_init 1 : !tile.barrier<2>
// RINGS:         %[[V_EMPTY:.*]] = tile.barrier_init 2 : !tile.barrier<2>
// RINGS:         %[[K_FULL:.*]] = tile.barrier_init 1 : !tile.barrier<2>
// RINGS:         %[[K_EMPTY:.*]] = tile.barrier_init 2 : !tile.barrier<2>
// RINGS:         %[[BEGIN:.*]] = tile.part_begin %[[ALL:.*]] for %{{.*}}, %[[ALL]]
// RINGS:         %[[PASSED:.*]]:2 = scf.for %{{.*}} = %[[ALL]] to %[[BEGIN]] step %c64{{.*}} iter_args(%[[V:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}})
// RINGS-NEXT:      tile.barrier_wait %[[V_FULL]][%[[V]]] {tile.role = "compute"}
// RINGS-NEXT:      tile.barrier_wait %[[K_FULL]][%[[K]]] {tile.role = "compute"}
// RINGS-NEXT:      %[[FIRST:.*]] = arith.constant 3
// RINGS-NEXT:      %[[NUMBER:.*]] = tile.warpgroup {tile.role = "compute"}
// RINGS-NEXT:      %[[ID:.*]] = arith.addi %[[FIRST]], %[[NUMBER]] {tile.role = "compute"}
// RINGS-NEXT:      tile.named_barrier sync %[[ID]] threads 128 {tile.role = "compute"}
// RINGS-NEXT:      tile.barrier_arrive %[[V_EMPTY]][%[[V]]] {tile.role = "compute"}
// RINGS-NEXT:      %[[V_NEXT:.*]] = tile.next %[[V]]
// RINGS-NEXT:      tile.barrier_arrive %[[K_EMPTY]][%[[K]]] {tile.role = "compute"}
// RINGS-NEXT:      %[[K_NEXT:.*]] = tile.next %[[K]]
// RINGS-NEXT:      scf.yield %[[V_NEXT]], %[[K_NEXT]]
// RINGS:         scf.for %{{.*}} = %[[BEGIN]] to %{{.*}} step %c64{{.*}} %[[PASSED]]#0, {{.*}}%[[PASSED]]#1

// Who loads begins with all rows, and each warpgroup by its number.
// ROLES-LABEL: func.func @late
// ROLES-SAME:    %[[N:[a-z0-9]+]]: index, %[[ALL:[a-z0-9]+]]: index, %[[FIRST:[a-z0-9]+]]: index
// ROLES:         role load
// ROLES-NOT:       tile.warpgroup
// ROLES:           scf.for %[[I:.*]] = %[[ALL]] to %[[N]] step
// ROLES-NEXT:        arith.cmpi ne, %[[I]], %[[ALL]]
// ROLES:         role compute
// ROLES:           %[[NUMBER:.*]] = tile.warpgroup
// ROLES-NEXT:      %[[IS_FIRST:.*]] = arith.cmpi {{eq|ult}}, %[[NUMBER]], %c
// ROLES-NEXT:      %[[BEGIN:.*]] = arith.select %[[IS_FIRST]], %[[FIRST]], %[[ALL]]
// ROLES-NEXT:      scf.for %{{.*}} = %[[ALL]] to %[[BEGIN]]
// ROLES:           scf.for %[[I:.*]] = %[[BEGIN]] to %[[N]]
// ROLES-NEXT:        arith.cmpi ne, %[[I]], %[[BEGIN]]
func.func @late(%k: !global, %v: !global, %n: index, %all: index, %first: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <stages = 2>>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !rows
  %ks = tile.alloc_shared : !tile
  %vs = tile.alloc_shared : !tile
  tile.copy %k[%c0, %c0] to %qs {tile.role = "load"} : !global, !rows
  %begin = tile.part_begin %all for %first, %all
  scf.for %i = %begin to %n step %c64 {
    %more = arith.cmpi ne, %i, %begin : index
    scf.if %more {
      tile.copy %v[%i, %c0] to %vs {tile.role = "load"} : !global, !tile
      %t = tile.mma %qs, %vs {tile.role = "compute", transpose_rhs} : !rows, !tile -> !result
    }
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"} : !global, !tile
    %s = tile.mma %qs, %ks {tile.role = "compute", transpose_rhs} : !rows, !tile -> !result
  }
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!rows = !tile.shared<128x64xbf16, swizzle = 128>
!result = tensor<128x64xf32, #tile.acc<units = 2>>
!half = tensor<128x64xbf16, #tile.acc<units = 2>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 2, registers = 240>

// Threads meet where they hand a tile over to each other: all of them come in each turn.
// RINGS-LABEL: func.func @together
// RINGS-NOT:     tile.part_begin
// RINGS:         scf.for %{{.*}} = %[[ALL:.*]] to
// RINGS-NOT:     scf.for
// ROLES-LABEL: func.func @together
// ROLES-NOT:     tile.warpgroup
func.func @together(%k: !global, %n: index, %all: index, %first: index, %x: bf16) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <stages = 2>>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ps = tile.alloc_shared : !rows
  %ks = tile.alloc_shared : !tile
  %begin = tile.part_begin %all for %first, %all
  scf.for %i = %begin to %n step %c64 {
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"} : !global, !tile
    %p = tile.broadcast %x : bf16 -> !half
    tile.store %p to %ps {tile.role = "compute"} : !half, !rows
    %s = tile.mma %ps, %ks {tile.role = "compute", transpose_rhs} : !rows, !tile -> !result
  }
  return
}

// -----

// Without roles everybody computes all rows.
// RINGS-LABEL: func.func @alone
// RINGS-NOT:     tile.part_begin
// RINGS:         scf.for %{{.*}} = %arg1 to %arg0
// ROLES-LABEL: func.func @alone
func.func @alone(%n: index, %all: index, %first: index, %out: memref<?xindex>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c64 = arith.constant 64 : index
  %begin = tile.part_begin %all for %first
  scf.for %i = %begin to %n step %c64 {
    memref.store %i, %out[%i] : memref<?xindex>
  }
  return
}
