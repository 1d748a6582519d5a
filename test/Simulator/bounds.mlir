// RUN: attn-opt %s --tile-simulate="shapes=64x64,320x64,64x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Memory: outside of it, too much of it, nothing in it.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

// expected-error@below {{budget: expected at most 232448 bytes of shared memory, got 245760}}
func.func @beyond_shared_memory(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  // expected-error@below {{out of bounds: ends at byte 245760 of shared memory, which has 232448}}
  %ks = tile.alloc_shared at 229376 : !ring
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

func.func @barrier_in_a_tile(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  // expected-note@below {{the tile is this}}
  %qs = tile.alloc_shared at 0 : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  // expected-error@below {{out of bounds: its barriers lie in a shared tile}}
  %full = tile.barrier_init 1 at 8176 : !tile.barrier<2>
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

func.func @too_many_registers(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  // expected-note@below {{the roles are these}}
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
  role consumer warpgroups 1 registers 56 {
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
    %last = tile.mma_async %qs, %qs {transpose_rhs} : !tile, !tile -> !tile.in_flight<!scores>
    tile.mma_commit
    // expected-error@below {{budget: role 'consumer' has 56 registers per thread, its tiles take at least 64 after this}}
    %other = tile.mma_wait 0, %last : !tile.in_flight<!scores>
    tile.store %other to %o[%zero, %zero] : !scores, !o
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

func.func @nobody_wrote_it(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
    // expected-note@below {{the shared memory is this}}
    %empty_tile = tile.alloc_shared : !tile
    // expected-error@below {{uninitialized: a shared tile read at row 0, which nobody has written}}
    %last = tile.mma_async %qs, %empty_tile {transpose_rhs} : !tile, !tile -> !tile.in_flight<!scores>
    tile.mma_commit
    %other = tile.mma_wait 0, %last : !tile.in_flight<!scores>
    tile.store %other to %o[%zero, %zero] : !scores, !o
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

func.func @gathers_outside(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
    %column = tile.coord 1 from %keys : tensor<64x64xindex, #acc>
    // expected-error@below {{out of bounds: reads element 320x320 of memory of shape 64x64}}
    %x = tile.gather %o[%column, %column] : !o, tensor<64x64xindex, #acc>, tensor<64x64xindex, #acc> -> !scores
    tile.store %x to %o[%zero, %zero] : !scores, !o
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

func.func @named_barrier_zero(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
    // expected-error@below {{out of bounds: expected a named barrier from 1 to 15, got 0}}
    tile.named_barrier sync %zero threads 128
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

func.func @places_overlap(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared at 0 : !tile
  %ks = tile.alloc_shared at 8192 : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 16384 : !tile.barrier<1>
    // expected-note@below {{the shared memory is this}}
    %other = tile.alloc_shared at 0 : !tile
    // expected-note@below {{a shared tile is written by this copy}}
    tile.copy_async %q[%zero, %zero] to %other signal %q_full : !q, !tile, !tile.barrier<1>
    // expected-error@below {{early write: a shared tile overwritten while it may still be written}}
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

// In front of the first column is the row before, or nobody's memory: no bound is asked there.
func.func @in_front(%o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant -1 : index
  %t = tile.load %o[%zero, %zero] : memref<?x64xf32> -> tensor<64x64xf32>
  // expected-error@below {{out of bounds: }}
  tile.store %t to %o[%zero, %one] : tensor<64x64xf32>, memref<?x64xf32>
  return
}

// -----

!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>

// Zeros come from as far outside as indices go.
func.func @far_outside(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %far = arith.constant -9223372036854775808 : index
  %place = tile.alloc_shared : !tile
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.barrier_expect %full bytes 8192 : !tile.barrier<1>
  tile.copy_async %q[%far, %far] to %place signal %full : !q, !tile, !tile.barrier<1>
  tile.barrier_wait %full : !tile.barrier<1>
  return
}

// -----

// A barrier at the last offset there is does not end before the first.
// expected-error@below {{budget: expected at most 232448 bytes of shared memory, got 9223372036854775807}}
func.func @farthest() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %b = tile.barrier_init 1 at 9223372036854775807 : !tile.barrier<1>
  return
}
