// RUN: attn-opt %s --tile-simulate="shapes=64x64,320x64,128x64 seeds=50" --split-input-file --verify-diagnostics -o %t

// What the compiler does not emit today. Two warpgroups take turns: each waits at its own named barrier for the other to
// arrive there, multiplies, and arrives at the other's. Numbers of barriers depend on the warpgroup.

#acc = #tile.acc<units = 2>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!ring = !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
!result = tensor<128x64xf32, #acc>
!a = tensor<128x64xbf16, #tile.operand_a<units = 2>>

func.func @turns(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %ks = tile.alloc_shared : !ring
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 2 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 8192 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot]
          : !q, !tile.shared<64x64xbf16, swizzle = 128>, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 2 registers 240 {
    %number = tile.warpgroup
    %mine = arith.addi %number, %one : index
    %other = arith.subi %two, %number : index
    %is_second = arith.cmpi eq, %number, %one : index
    scf.if %is_second {
      tile.named_barrier arrive %one threads 256
    }
    %p = arith.constant dense<1.0> : !a
    %none = arith.constant dense<0.0> : !result
    %first = tile.slot : !tile.slot<2>
    %last, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none) -> (!tile.slot<2>, !result) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.named_barrier sync %mine threads 256
      %flying = tile.mma_async %p, %kj, %acc : !a, !tile.shared<64x64xbf16, swizzle = 128>, !result -> !tile.in_flight<!result>
      tile.mma_commit
      tile.named_barrier arrive %other threads 256
      %done = tile.mma_wait 0, %flying : !tile.in_flight<!result>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %done : !tile.slot<2>, !result
    }
    tile.store %sum to %o[%zero, %zero] : !result, !o
  }
  return
}

// -----

// Chained products, a blocked tile, a search by scf.while, integers.

#acc = #tile.acc<units = 1>
#rows = #tile.blocked<vector = 8, lanes = 8, warps = 4>
!q = memref<?x64xbf16>
!o = memref<?x64xf32>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #acc>

func.func @others(%q: !q, %k: !q, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 64 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !tile
  tile.copy %q[%zero, %zero] to %qs : !q, !tile
  %last = scf.while (%n = %zero) : (index) -> index {
    %next = arith.addi %n, %step : index
    %more = arith.cmpi slt, %next, %keys : index
    scf.condition(%more) %next : index
  } do {
  ^bb0(%n: index):
    scf.yield %n : index
  }
  tile.copy %k[%zero, %zero] to %ks : !q, !tile
  %first = tile.mma_async %qs, %ks {transpose_rhs} : !tile, !tile -> !tile.in_flight<!result>
  %second = tile.mma_async %qs, %ks, %first {transpose_rhs} : !tile, !tile, !tile.in_flight<!result> -> !tile.in_flight<!result>
  tile.mma_commit
  %twice = tile.mma_wait 0, %second : !tile.in_flight<!result>
  %row = tile.coord 0 from %last : tensor<64x64xindex, #acc>
  %column = tile.coord 1 from %zero : tensor<64x64xindex, #acc>
  %keep = arith.cmpi slt, %column, %row : tensor<64x64xindex, #acc>
  %none = arith.constant dense<0.0> : !result
  %kept = arith.select %keep, %twice, %none : tensor<64x64xi1, #acc>, !result
  tile.store %kept to %o[%zero, %zero] : !result, !o
  %moved = tile.load %q[%zero, %zero] : !q -> tensor<64x64xbf16, #rows>
  %wide = arith.extf %moved : tensor<64x64xbf16, #rows> to tensor<64x64xf32, #rows>
  tile.store %wide to %o[%step, %zero] : tensor<64x64xf32, #rows>, !o
  return
}

// -----

// What the simulator cannot run is named.
#acc = #tile.acc<units = 2>
// expected-error @below {{expected a layout over the 1 warpgroups of the role, got one over 2}}
func.func @layout_of_another_role(%q: memref<?x64xf32>, %k: memref<?x64xf32>, %o: memref<?x64xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.load %q[%zero, %zero] : memref<?x64xf32> -> tensor<128x64xf32, #acc>
  tile.store %t to %o[%zero, %zero] : tensor<128x64xf32, #acc>, memref<?x64xf32>
  return
}

// -----

// expected-error @below {{expected a shape for argument 3, got 3 shapes}}
func.func @too_few_shapes(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %d: memref<?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}
