// Two warpgroups exchange what they computed through shared memory, and store through it: every kind of fence and meeting
// that the compiler's kernels do not need. Synchronisation by named barriers; a step's values are the other's too.

#acc = #tile.acc<units = 2>
!q = memref<?x64xbf16>
!tile = !tile.shared<128x64xbf16, swizzle = 128>
!ring = !tile.shared<128x64xbf16, swizzle = 128, stages = 2>
!result = tensor<128x64xf32, #acc>
!square = tensor<128x128xf32, #acc>
!half = tensor<128x128xbf16, #acc>
!exchange = !tile.shared<128x128xbf16, swizzle = 128>

func.func @exchange(%q: !q, %k: !q, %o: !q) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %step = arith.constant 128 : index
  %written = arith.constant 1 : index
  %read = arith.constant 2 : index
  %keys = memref.dim %k, %zero : !q
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %xs = tile.alloc_shared : !exchange
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 2 : !tile.barrier<2>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 16384 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %q_full : !q, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %n = %zero to %keys step %step iter_args(%slot = %first) -> !tile.slot<2> {
      tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %full[%slot] bytes 16384 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.copy_async %k[%n, %zero] to %kj signal %full[%slot] : !q, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 2 registers 240 {
    %none = arith.constant dense<0.0> : !result
    %small = arith.constant dense<0.01> : !square
    %first = tile.slot : !tile.slot<2>
    tile.barrier_wait %q_full : !tile.barrier<1>
    %slot_end, %sum = scf.for %n = %zero to %keys step %step iter_args(%slot = %first, %acc = %none)
        -> (!tile.slot<2>, !result) {
      tile.barrier_wait %full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %s_flying = tile.mma_async %qs, %kj {transpose_rhs} : !tile, !tile -> !tile.in_flight<!square>
      tile.mma_commit
      %s = tile.mma_wait 0, %s_flying : !tile.in_flight<!square>
      %scaled = arith.mulf %s, %small : !square
      %h = arith.truncf %scaled : !square to !half
      tile.named_barrier sync %read threads 256
      tile.store %h to %xs : !half, !exchange
      tile.fence async_shared
      tile.named_barrier sync %written threads 256
      %o_flying = tile.mma_async %xs, %kj, %acc {transpose_lhs} : !exchange, !tile, !result -> !tile.in_flight<!result>
      tile.mma_commit
      %next_acc = tile.mma_wait 0, %o_flying : !tile.in_flight<!result>
      tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %next_acc : !tile.slot<2>, !result
    }
    %out = arith.truncf %sum : !result to tensor<128x64xbf16, #acc>
    tile.store %out to %qs : tensor<128x64xbf16, #acc>, !tile
    tile.fence async_shared
    tile.named_barrier sync %written threads 256
    tile.store_async %qs to %o[%zero, %zero] : !tile, !q
    tile.store_wait
  }
  return
}
