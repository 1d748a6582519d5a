// RUN: attn-opt %s --tile-simulate="shapes=64x64,320x64,64x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Bytes expected, bytes copied, arrivals counted.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @expects_more_than_comes(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  // expected-note@below {{the barrier is initialised here}}
  %full = tile.barrier_init 1 : !tile.barrier<2>
  // expected-note@below {{the barrier is initialised here}}
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      // expected-note@below {{producer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals}}
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      // expected-note@below {{8208 bytes are expected here}}
      tile.barrier_expect %full[%slot] bytes 8208 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      // expected-note@below {{8192 bytes are copied here}}
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot] : !q, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      // expected-error@below {{transaction count: the barrier is never complete: 1 of 1 arrivals, 8192 of 8208 bytes}}
      // expected-note@below {{consumer waits here for barrier 0 of its array, phase 0: 1 of 1 arrivals, 8192 of 8208 bytes}}
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %s : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @expects_less_than_comes(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      // expected-note@below {{8176 bytes are expected here}}
      tile.barrier_expect %full[%slot] bytes 8176 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      // expected-error@below {{transaction count: a phase of the barrier expects 8176 bytes, copies bring 8192}}
      // expected-note@below {{8192 bytes are copied here}}
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot] : !q, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %s : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @copies_twice(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  // expected-note@below {{the shared memory is this}}
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    // expected-note@below {{a shared tile is written by this copy}}
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      // expected-note@below {{8192 bytes are expected here}}
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      // expected-note@below {{8192 bytes are copied here}}
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot] : !q, !tile, !tile.barrier<2>
      // expected-error@below {{early write: a shared tile overwritten while it may still be written}}
      // expected-error@below {{transaction count: a phase of the barrier expects 8192 bytes, copies bring 16384}}
      // expected-note@below {{8192 bytes are copied here}}
      tile.copy_async %k[%zero, %zero] to %qs signal %full[%slot] : !q, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %s : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @arrives_twice(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{the shared memory is this}}
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      // expected-error@below {{early write: stage 0 of a shared ring overwritten while it may still be written}}
      // expected-note@below {{stage 0 of a shared ring is written by this copy}}
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot] : !q, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %s : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @named_barrier_of_other_size(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot] : !q, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 1 registers 240 {
    %one = arith.constant 1 : index
    // expected-error@below {{phase: named barrier 1 is for 96 threads here, 128 come}}
    // expected-note@below {{the first to come is here}}
    tile.named_barrier sync %one threads 96
    %none = arith.constant dense<0.0> : !scores
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !scores) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %s : !tile.slot<2>, !scores
    }
    tile.store %sum to %o[%zero, %zero] : !scores, !o
  }
  return
}
