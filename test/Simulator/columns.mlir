// RUN: attn-opt %s --tile-simulate="shapes=64x64,1x640,64x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Rows of numbers that threads read.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!numbers = memref<?x?xf32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64xf32, stages = 2>
!row = !tile.shared<64xf32>
!scores = tensor<64x64xf32, #acc>

// A product says that all threads of the warpgroup have read what it starts with.
func.func @read_before_a_product(%q: !q, %m: !numbers, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %n = memref.dim %m, %one : !numbers
  %qs = tile.alloc_shared : !tile
  %rows = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %i = %zero to %n step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 256 : !tile.barrier<2>
      %row = tile.stage %rows[%slot] : !ring
      tile.copy_async %m[%zero, %i] to %row signal %full[%slot] : !numbers, !row, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %i = %zero to %n step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %row = tile.stage %rows[%slot] : !ring
      %start = tile.load_columns %row : !row -> !scores
      %flying = tile.mma_async %qs, %qs, %start {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      %t = arith.addf %s, %acc : !scores
      scf.yield %next, %t : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!numbers = memref<?x?xf32>
!o = memref<?x64xf32>
!ring = !tile.shared<64xf32, stages = 2>
!row = !tile.shared<64xf32>
!scores = tensor<64x64xf32, #acc>

// One thread arrives, and nobody knows about the others of its warpgroup.
func.func @read_without_a_product(%q: !q, %m: !numbers, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %n = memref.dim %m, %one : !numbers
  // expected-note@below {{the shared memory is this}}
  %rows = tile.alloc_shared : !ring
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    %first = tile.slot : !tile.slot<2>
    scf.for %i = %zero to %n step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 256 : !tile.barrier<2>
      %row = tile.stage %rows[%slot] : !ring
      // expected-error@below {{stage 0 of a shared ring overwritten before all its readers are known to be done}}
      tile.copy_async %m[%zero, %i] to %row signal %full[%slot] : !numbers, !row, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    %slot_end, %sum = scf.for %i = %zero to %n step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %row = tile.stage %rows[%slot] : !ring
      // expected-note@below {{stage 0 of a shared ring is read by threads}}
      %start = tile.load_columns %row : !row -> !scores
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      %t = arith.addf %start, %acc : !scores
      scf.yield %next, %t : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!numbers = memref<?x?xf32>
!o = memref<?x64xf32>
!row = !tile.shared<64xf32>
!scores = tensor<64x64xf32, #acc>

func.func @read_too_early(%q: !q, %m: !numbers, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  // expected-note@below {{the shared memory is this}}
  %row = tile.alloc_shared : !row
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.barrier_expect %full bytes 256 : !tile.barrier<1>
  // expected-note@below {{a shared tile is written by this copy}}
  tile.copy_async %m[%zero, %zero] to %row signal %full : !numbers, !row, !tile.barrier<1>
  // expected-error@below {{a shared tile read before the write to it is known to be done}}
  %s = tile.load_columns %row : !row -> !scores
  tile.store %s to %o[%zero, %zero] : !scores, !o
  tile.barrier_wait %full : !tile.barrier<1>
  return
}

// -----

// In room 4 numbers are still in global memory, and nobody has a row of them.
func.func @of_global_memory(%q: memref<?x64xbf16>, %m: memref<?x?xf32>, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  // expected-error@below {{expected a row in shared memory, which tile-promote-operands makes}}
  %t = tile.load_columns %m[%zero, %zero] : memref<?x?xf32> -> tensor<64x64xf32>
  tile.store %t to %o[%zero, %zero] : tensor<64x64xf32>, memref<?x64xf32>
  return
}
