// RUN: attn-opt %s --tile-make-rings | FileCheck %s

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
!half = tensor<64x64xbf16, #tile.acc<units = 1>>
!a = tensor<64x64xbf16, #tile.operand_a<units = 1>>

// A place that is read twice is given back after the second product; one that is filled once never.
// CHECK-LABEL: func.func @two_readers
// CHECK:         %[[Q:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
// CHECK:         %[[Q_FULL:.*]] = tile.barrier_init 1 : !tile.barrier<1>
// CHECK:         %[[K:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK:         %[[FULL:.*]] = tile.barrier_init 1 : !tile.barrier<2>
// CHECK:         %[[EMPTY:.*]] = tile.barrier_init 1 : !tile.barrier<2>
// CHECK:         %[[FILL0:.*]] = tile.slot
// CHECK:         %[[READ0:.*]] = tile.slot
func.func @two_readers(%q: !global, %k: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !tile
  // CHECK: tile.barrier_expect %[[Q_FULL]] bytes 8192 {tile.role = "load"}
  // CHECK: tile.copy_async {{.*}} to %[[Q]] signal %[[Q_FULL]] {tile.role = "load"}
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  // The wait is before the loop, with the first op of the fill's block that reads.
  // CHECK: tile.barrier_wait %[[Q_FULL]] {tile.role = "compute"}
  // CHECK: scf.for {{.*}} iter_args(%[[FILL:.*]] = %[[FILL0]], %[[READ:.*]] = %[[READ0]])
  scf.for %i = %c0 to %n step %c64 {
    // CHECK: tile.barrier_wait previous %[[EMPTY]][%[[FILL]]] {tile.role = "load"}
    // CHECK: tile.barrier_expect %[[FULL]][%[[FILL]]] bytes 8192 {tile.role = "load"}
    // CHECK: %[[INTO:.*]] = tile.stage %[[K]][%[[FILL]]]
    // CHECK: tile.copy_async {{.*}} to %[[INTO]] signal %[[FULL]][%[[FILL]]] {tile.role = "load"}
    // CHECK: %[[FILL_NEXT:.*]] = tile.next %[[FILL]]
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"} : !global, !tile
    // CHECK: tile.barrier_wait %[[FULL]][%[[READ]]] {tile.role = "compute"}
    // CHECK: %[[FROM:.*]] = tile.stage %[[K]][%[[READ]]]
    // CHECK: %[[S:.*]] = tile.mma %[[Q]], %[[FROM]] {tile.role = "compute", transpose_rhs}
    // CHECK-NOT: tile.barrier_arrive
    %s = tile.mma %qs, %ks {tile.role = "compute", transpose_rhs} : !tile, !tile -> !result
    %h = arith.truncf %s : !result to !half
    %a = tile.convert_layout %h : !half -> !a
    // CHECK: tile.mma %{{.*}}, %[[FROM]] {tile.role = "compute"}
    // CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][%[[READ]]] {tile.role = "compute"}
    // CHECK-NEXT: %[[READ_NEXT:.*]] = tile.next %[[READ]]
    %t = tile.mma %a, %ks {tile.role = "compute"} : !a, !tile -> !result
    // CHECK: scf.yield %[[FILL_NEXT]], %[[READ_NEXT]]
  }
  return
}

// A fill around a loop that reads it: the release follows the loop.
// CHECK-LABEL: func.func @loop_in_loop
// CHECK:         tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
func.func @loop_in_loop(%q: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c64 {
    // CHECK: tile.copy_async
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
    // CHECK: tile.barrier_wait %{{.*}}[%[[READ:.*]]] {tile.role = "compute"}
    // CHECK: %[[STAGE:.*]] = tile.stage
    // CHECK: scf.for
    scf.for %j = %c0 to %n step %c64 {
      // CHECK-NEXT: tile.mma %[[STAGE]], %[[STAGE]]
      %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
    }
    // CHECK: {{^ *}}}
    // CHECK-NEXT: tile.barrier_arrive %{{.*}}[%[[READ]]] {tile.role = "compute"}
  }
  return
}

// What is held so is given one stage where two do not fit.
// CHECK-LABEL: func.func @held
// CHECK:         tile.alloc_shared : !tile.shared<256x256xbf16, swizzle = 128>
// CHECK-COUNT-2: tile.barrier_init 1 : !tile.barrier<1>
// CHECK-COUNT-2: tile.slot : !tile.slot<1>
func.func @held(%q: memref<?x256xbf16, strided<[?, 1]>>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile.shared<256x256xbf16, swizzle = 128>
  scf.for %i = %c0 to %n step %c64 {
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : memref<?x256xbf16, strided<[?, 1]>>, !tile.shared<256x256xbf16, swizzle = 128>
    scf.for %j = %c0 to %n step %c64 {
      %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile.shared<256x256xbf16, swizzle = 128>, !tile.shared<256x256xbf16, swizzle = 128> -> tensor<256x256xf32, #tile.acc<units = 4>>
    }
  }
  return
}

// Slots go through branches; the one that fills nothing hands them on.
// CHECK-LABEL: func.func @branch
func.func @branch(%q: !global, %n: index, %live: i1) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  // CHECK: scf.for {{.*}} iter_args(%[[FILL:.*]] = %{{.*}}, %[[READ:.*]] = %{{.*}})
  scf.for %i = %c0 to %n step %c64 {
    // CHECK: %[[IF:.*]]:2 = scf.if
    scf.if %live {
      // CHECK: tile.copy_async
      // CHECK: %[[FILL_NEXT:.*]] = tile.next %[[FILL]]
      tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
      // CHECK: %[[READ_NEXT:.*]] = tile.next %[[READ]]
      // CHECK: scf.yield %[[FILL_NEXT]], %[[READ_NEXT]]
      %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
    }
    // CHECK: else
    // CHECK: scf.yield %[[FILL]], %[[READ]]
    // CHECK: scf.yield %[[IF]]#0, %[[IF]]#1
  }
  return
}

// CHECK-LABEL: func.func @while
func.func @while(%q: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  // CHECK: scf.while (%{{.*}} = %{{.*}}, %[[FILL0:.*]] = %{{.*}}, %[[READ0:.*]] = %{{.*}})
  // CHECK: scf.condition(%{{.*}}) %{{.*}}, %[[FILL0]], %[[READ0]]
  // CHECK: ^bb0(%{{.*}}: index, %[[FILL:.*]]: !tile.slot<2>, %[[READ:.*]]: !tile.slot<2>):
  // CHECK: tile.copy_async
  // CHECK: %[[FILL_NEXT:.*]] = tile.next %[[FILL]]
  // CHECK: %[[READ_NEXT:.*]] = tile.next %[[READ]]
  // CHECK: scf.yield %{{.*}}, %[[FILL_NEXT]], %[[READ_NEXT]]
  %r = scf.while (%i = %c0) : (index) -> index {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i : index
  } do {
  ^bb0(%i: index):
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
    %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
    %j = arith.addi %i, %c64 : index
    scf.yield %j : index
  }
  return
}

// Threads of one role hand a tile over to others of another: they fence, meet, and arrive for their warpgroups.
// CHECK-LABEL: func.func @stored
// CHECK:         %[[P:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK:         %[[FULL:.*]] = tile.barrier_init 128 : !tile.barrier<2>
// CHECK:         %[[EMPTY:.*]] = tile.barrier_init 2 : !tile.barrier<2>
func.func @stored(%n: index, %x: !half) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "give", warpgroups = 1, registers = 160>,
                  #tile.role<name = "take", warpgroups = 1, registers = 160>,
                  #tile.role<name = "also", warpgroups = 1, registers = 160>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ps = tile.alloc_shared : !tile
  scf.for %i = %c0 to %n step %c64 {
    // CHECK: tile.barrier_wait previous %[[EMPTY]][%[[FILL:.*]]] {tile.role = "give"}
    // CHECK: %[[INTO:.*]] = tile.stage %[[P]][%[[FILL]]]
    // CHECK: tile.store %{{.*}} to %[[INTO]] {tile.role = "give"}
    // CHECK: tile.fence async_shared {tile.role = "give"}
    // CHECK: tile.barrier_arrive %[[FULL]][%[[FILL]]] {each, tile.role = "give"}
    tile.store %x to %ps {tile.role = "give"} : !half, !tile
    // CHECK: tile.barrier_wait %[[FULL]][%[[TAKE:.*]]] {tile.role = "take"}
    // CHECK: tile.mma
    // CHECK: tile.barrier_arrive %[[EMPTY]][%[[TAKE]]] {tile.role = "take"}
    // CHECK: tile.barrier_wait %[[FULL]][%[[ALSO:.*]]] {tile.role = "also"}
    // CHECK: tile.mma
    // CHECK: tile.barrier_arrive %[[EMPTY]][%[[ALSO]]] {tile.role = "also"}
    %s = tile.mma %ps, %ps {tile.role = "take"} : !tile, !tile -> !result
    %t = tile.mma %ps, %ps {tile.role = "also"} : !tile, !tile -> !result
  }
  return
}

// Within one role threads meet before a tile is overwritten and after it is.
// CHECK-LABEL: func.func @local
// CHECK:         %[[P:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
// CHECK-NOT:     tile.barrier_init
func.func @local(%n: index, %x: !half) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ps = tile.alloc_shared : !tile
  scf.for %i = %c0 to %n step %c64 {
    // CHECK: tile.named_barrier sync %[[ID:.*]] threads 128 {tile.role = "compute"}
    // CHECK: tile.store %{{.*}} to %[[P]] {tile.role = "compute"}
    // CHECK: tile.fence async_shared {tile.role = "compute"}
    // CHECK: tile.named_barrier sync %{{.*}} threads 128 {tile.role = "compute"}
    // CHECK: tile.mma %[[P]], %[[P]]
    tile.store %x to %ps {tile.role = "compute"} : !half, !tile
    %s = tile.mma %ps, %ps {tile.role = "compute"} : !tile, !tile -> !result
  }
  return
}

// What nobody reads is not copied.
// CHECK-LABEL: func.func @unread
// CHECK-NOT:     tile.copy
func.func @unread(%q: !global) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  return
}

// A row travels with the tile beside it: the same barriers, its bytes are counted with the tile's, and the tile's last product says
// that it has been read.
// CHECK-LABEL: func.func @passenger
// CHECK:         %[[K:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK:         %[[ROW:.*]] = tile.alloc_shared : !tile.shared<64xf32, stages = 2>
// CHECK:         %[[FULL:.*]] = tile.barrier_init 1 : !tile.barrier<2>
// CHECK:         %[[EMPTY:.*]] = tile.barrier_init 1 : !tile.barrier<2>
// CHECK-NOT:     tile.barrier_init
func.func @passenger(%q: !global, %k: !global, %numbers: memref<?x?xf32>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ks = tile.alloc_shared : !tile
  %row = tile.alloc_shared : !tile.shared<64xf32>
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c64 {
    // CHECK:      tile.barrier_wait previous %[[EMPTY]][%[[FILL:.*]]] {tile.role = "load"}
    // CHECK-NEXT: tile.barrier_expect %[[FULL]][%[[FILL]]] bytes 8448 {tile.role = "load"}
    // CHECK-NEXT: %[[INTO:.*]] = tile.stage %[[K]][%[[FILL]]]
    // CHECK-NEXT: tile.copy_async {{.*}} to %[[INTO]] signal %[[FULL]][%[[FILL]]] {tile.role = "load"}
    // CHECK-NEXT: %[[BESIDE:.*]] = tile.stage %[[ROW]][%[[FILL]]]
    // CHECK-NEXT: tile.copy_async {{.*}} to %[[BESIDE]] signal %[[FULL]][%[[FILL]]] {tile.role = "load"}
    // CHECK-NEXT: tile.next %[[FILL]]
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"} : !global, !tile
    tile.copy %numbers[%c0, %i] to %row {tile.role = "load"} : memref<?x?xf32>, !tile.shared<64xf32>
    // CHECK-NEXT: tile.barrier_wait %[[FULL]][%[[READ:.*]]] {tile.role = "compute"}
    // CHECK-DAG:  %[[FROM:.*]] = tile.stage %[[K]][%[[READ]]]
    // CHECK-DAG:  %[[NUMBERS:.*]] = tile.stage %[[ROW]][%[[READ]]]
    // CHECK:      %[[START:.*]] = tile.load_columns %[[NUMBERS]] {tile.role = "compute"}
    %start = tile.load_columns %row {tile.role = "compute"} : !tile.shared<64xf32> -> !result
    // CHECK-NEXT: tile.mma %[[FROM]], %[[FROM]], %[[START]]
    // CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][%[[READ]]] {tile.role = "compute"}
    // CHECK-NOT:  tile.barrier_arrive
    %s = tile.mma %ks, %ks, %start {tile.role = "compute", transpose_rhs} : !tile, !tile, !result -> !result
  }
  return
}

// Stages of a row that is no multiple of 128 bytes would not lie where stages may: there is one.
// CHECK-LABEL: func.func @narrow_passenger
// CHECK:         tile.alloc_shared : !tile.shared<48x64xbf16, swizzle = 128>
// CHECK-NEXT:    tile.alloc_shared : !tile.shared<48xf32>
// CHECK-NEXT:    tile.barrier_init 1 : !tile.barrier<1>
func.func @narrow_passenger(%k: !global, %numbers: memref<?x?xf32>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %q = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !tile.shared<48x64xbf16, swizzle = 128>
  %row = tile.alloc_shared : !tile.shared<48xf32>
  tile.copy %k[%c0, %c0] to %q {tile.role = "load"} : !global, !tile
  scf.for %i = %c0 to %n step %c48 {
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"} : !global, !tile.shared<48x64xbf16, swizzle = 128>
    tile.copy %numbers[%c0, %i] to %row {tile.role = "load"} : memref<?x?xf32>, !tile.shared<48xf32>
    %start = tile.load_columns %row {tile.role = "compute"} : !tile.shared<48xf32> -> tensor<64x48xf32, #tile.acc<units = 1>>
    %s = tile.mma %q, %ks, %start {tile.role = "compute", transpose_rhs}
      : !tile, !tile.shared<48x64xbf16, swizzle = 128>, tensor<64x48xf32, #tile.acc<units = 1>> -> tensor<64x48xf32, #tile.acc<units = 1>>
  }
  return
}
