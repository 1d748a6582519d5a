// RUN: attn-opt %s --tile-simulate="shapes=64x64,7x1x1x64,1x300,64x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Rows that threads gather land later than the threads say: the correct kernel, then one mistake at a time.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!pool = memref<?x1x?x64xbf16>
!table = memref<?x?xi32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!rows = !tile.rows<64, warps = 4>
!scores = tensor<64x64xf32, #acc>

func.func @correct(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: !table, %o: !o) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %table, %one : !table
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 128 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 40 {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      %rows = tile.find_rows %k[%zero, %zero, %n, %zero] : !pool -> !rows
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.gather_async %k[%zero, %zero, %n, %zero] at %rows to %kj : !pool, !rows, !tile
      tile.arrive_landed %full[%slot] : !tile.barrier<2>
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
      tile.fence async_shared
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

// Its threads have started to copy, and nothing is there.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!pool = memref<?x1x?x64xbf16>
!table = memref<?x?xi32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!rows = !tile.rows<64, warps = 4>
!scores = tensor<64x64xf32, #acc>

func.func @arrives_before_it_lands(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: !table, %o: !o) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %table, %one : !table
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{the shared memory is this}}
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 128 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 40 {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      %rows = tile.find_rows %k[%zero, %zero, %n, %zero] : !pool -> !rows
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      // expected-note@below {{stage 0 of a shared ring is written by this gathering of rows}}
      tile.gather_async %k[%zero, %zero, %n, %zero] at %rows to %kj : !pool, !rows, !tile
      tile.barrier_arrive %full[%slot] {each} : !tile.barrier<2>
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
      tile.fence async_shared
      %kj = tile.stage %ks[%slot] : !ring
      // expected-error@below {{stage 0 of a shared ring read before the write to it is known to be done}}
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

// A fence of those who gather comes before the rows, and orders nothing.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!pool = memref<?x1x?x64xbf16>
!table = memref<?x?xi32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!rows = !tile.rows<64, warps = 4>
!scores = tensor<64x64xf32, #acc>

func.func @fences_too_early(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: !table, %o: !o) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %table, %one : !table
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{the shared memory is this}}
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 128 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 40 {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      %rows = tile.find_rows %k[%zero, %zero, %n, %zero] : !pool -> !rows
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      // expected-note@below {{stage 0 of a shared ring is written by this gathering of rows}}
      tile.gather_async %k[%zero, %zero, %n, %zero] at %rows to %kj : !pool, !rows, !tile
      tile.fence async_shared
      tile.arrive_landed %full[%slot] : !tile.barrier<2>
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
      // expected-error@below {{stage 0 of a shared ring used by asynchronous hardware without a tile.fence async_shared after threads wrote it}}
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

// Stages that somebody reads are written.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!pool = memref<?x1x?x64xbf16>
!table = memref<?x?xi32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!rows = !tile.rows<64, warps = 4>
!scores = tensor<64x64xf32, #acc>

func.func @waits_for_nobody(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: !table, %o: !o) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %table, %one : !table
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{the shared memory is this}}
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 128 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 40 {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      %rows = tile.find_rows %k[%zero, %zero, %n, %zero] : !pool -> !rows
      %kj = tile.stage %ks[%slot] : !ring
      // expected-error@below {{stage 0 of a shared ring overwritten while it may still be written}}
      // expected-note@below {{stage 0 of a shared ring is written by this gathering of rows}}
      tile.gather_async %k[%zero, %zero, %n, %zero] at %rows to %kj : !pool, !rows, !tile
      tile.arrive_landed %full[%slot] : !tile.barrier<2>
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
      tile.fence async_shared
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
!pool = memref<?x1x?x64xbf16>
!table = memref<?x?xi32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!rows = !tile.rows<64, warps = 4>
!scores = tensor<64x64xf32, #acc>

func.func @gathers_nothing(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: !table, %o: !o) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %table, %one : !table
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{the shared memory is this}}
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 128 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 40 {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      %rows = tile.find_rows %k[%zero, %zero, %n, %zero] : !pool -> !rows
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.arrive_landed %full[%slot] : !tile.barrier<2>
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
      tile.fence async_shared
      %kj = tile.stage %ks[%slot] : !ring
      // expected-error@below {{stage 0 of a shared ring read at row 0, which nobody has written}}
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

// Each of the threads arrives.

#acc = #tile.acc<units = 1>
!q = memref<?x64xbf16>
!pool = memref<?x1x?x64xbf16>
!table = memref<?x?xi32>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!rows = !tile.rows<64, warps = 4>
!scores = tensor<64x64xf32, #acc>

func.func @counts_one_arrival(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: !table, %o: !o) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %table, %one : !table
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  // expected-note@below {{the barrier is initialised here}}
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 1 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 40 {
    tile.barrier_expect %q_full bytes 8192 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      %rows = tile.find_rows %k[%zero, %zero, %n, %zero] : !pool -> !rows
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.gather_async %k[%zero, %zero, %n, %zero] at %rows to %kj : !pool, !rows, !tile
      // expected-error@below {{arrival at a barrier whose 1 arrivals of this phase have all come}}
      tile.arrive_landed %full[%slot] : !tile.barrier<2>
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
      tile.fence async_shared
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
