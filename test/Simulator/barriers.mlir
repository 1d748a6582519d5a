// RUN: attn-opt %s --tile-simulate="shapes=64x64,320x64,64x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Full and empty barriers: the correct kernel, then one mistake at a time.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!scores = tensor<64x64xf32, #acc>
!p = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @correct(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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

func.func @no_full_wait(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      %kj = tile.stage %ks[%slot] : !ring
      // expected-error@below {{early read: stage 0 of a shared ring read before the write to it is known to be done}}
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

func.func @no_empty_wait(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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

func.func @arrives_before_the_product_is_done(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      // expected-error@below {{early write: stage 0 of a shared ring overwritten before all its readers are known to be done}}
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
      // expected-note@below {{stage 0 of a shared ring is read by this product}}
      %flying = tile.mma_async %qs, %kj, %acc {transpose_rhs} : !tile, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
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

func.func @reads_the_stage_of_the_next_use(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
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
      // expected-note@below {{stage 1 of a shared ring is written by this copy}}
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
      %other = tile.next %slot : !tile.slot<2>
      %kj = tile.stage %ks[%other] : !ring
      // expected-error@below {{early read: stage 1 of a shared ring read before the write to it is known to be done}}
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

func.func @no_sync(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  // expected-note@below {{it is initialised here}}
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
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
    // expected-error@below {{invalid: barrier used before a tile.sync makes its initialisation visible}}
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
