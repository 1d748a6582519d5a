// RUN: attn-opt %s --tile-simulate="shapes=64x64,320x64,64x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Barriers that are never complete, and who waits for what.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @no_arrival(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      // expected-error@below {{deadlock: no role of the block can go on}}
      // expected-note@below {{producer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals}}
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
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
      // expected-note@below {{consumer waits here for barrier 0 of its array, phase 1: 0 of 1 arrivals}}
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
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

func.func @too_few_arrivals(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  // expected-note@below {{the barrier is initialised here}}
  %full = tile.barrier_init 1 : !tile.barrier<2>
  // expected-note@below {{the barrier is initialised here}}
  %empty = tile.barrier_init 2 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      // expected-error@below {{deadlock: no role of the block can go on}}
      // expected-note@below {{producer waits here for barrier 0 of its array, phase 0: 1 of 2 arrivals}}
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
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
      // expected-note@below {{consumer waits here for barrier 0 of its array, phase 1: 0 of 1 arrivals}}
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

func.func @not_previous(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      // expected-error@below {{deadlock: no role of the block can go on}}
      // expected-note@below {{producer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals}}
      tile.barrier_wait %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
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
      // expected-note@below {{consumer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals}}
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

func.func @no_expect(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      // expected-error@below {{deadlock: no role of the block can go on}}
      // expected-note@below {{producer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals}}
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
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
      // expected-note@below {{consumer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals, 8192 of 0 bytes}}
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

func.func @no_copy(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      // expected-note@below {{8192 bytes are expected here}}
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
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
      // expected-error@below {{transaction count: the barrier is never complete: 1 of 1 arrivals, 0 of 8192 bytes}}
      // expected-note@below {{consumer waits here for barrier 0 of its array, phase 0: 1 of 1 arrivals, 0 of 8192 bytes}}
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

func.func @named_barrier(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
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
      // expected-error@below {{deadlock: no role of the block can go on}}
      // expected-note@below {{producer waits here for barrier 0 of its array, phase 0: 0 of 1 arrivals}}
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
    // expected-note@below {{consumer waits here: 128 of 256 threads have come to named barrier 1}}
    tile.named_barrier sync %one threads 256
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
