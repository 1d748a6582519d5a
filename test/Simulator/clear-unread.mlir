// RUN: attn-opt %s --tile-simulate="shapes=128x64,64x64,128x64 seeds=20" --split-input-file --verify-diagnostics -o %t

// Zeros for values that no row reads: the correct kernel, then one mistake at a time.

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>
!s = tensor<128x64xf32, #acc>
!p = tensor<128x64xbf16, #acc>
!a = tensor<128x64xbf16, #tile.operand_a<units = 2>>

func.func @correct(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %qs = tile.alloc_shared : !q
  %ks = tile.alloc_shared : !k
  %marks = tile.alloc_shared : !marks
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    %p = arith.truncf %s : !s to !p
    tile.mark_read %p to %marks : !p, !marks
    tile.named_barrier sync %two threads 256
    tile.clear_unread %ks by %marks : !k, !marks
    tile.fence async_shared
    tile.named_barrier sync %two threads 256
    %a = tile.convert_layout %p : !p -> !a
    %next = tile.mma_async %a, %ks : !a, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %sum = tile.mma_wait 0, %next : !tile.in_flight<!s>
    tile.store %sum to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>
!s = tensor<128x64xf32, #acc>
!p = tensor<128x64xbf16, #acc>
!a = tensor<128x64xbf16, #tile.operand_a<units = 2>>

func.func @no_meeting_before(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %qs = tile.alloc_shared : !q
  %ks = tile.alloc_shared : !k
  // expected-note@+1 {{the shared memory is this}}
  %marks = tile.alloc_shared : !marks
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    %p = arith.truncf %s : !s to !p
    // expected-note@+1 {{a shared tile is written by threads}}
    tile.mark_read %p to %marks : !p, !marks
    // expected-error@+1 {{a shared tile read before the write to it is known to be done}}
    tile.clear_unread %ks by %marks : !k, !marks
    tile.fence async_shared
    tile.named_barrier sync %two threads 256
    %a = tile.convert_layout %p : !p -> !a
    %next = tile.mma_async %a, %ks : !a, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %sum = tile.mma_wait 0, %next : !tile.in_flight<!s>
    tile.store %sum to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>
!s = tensor<128x64xf32, #acc>
!p = tensor<128x64xbf16, #acc>
!a = tensor<128x64xbf16, #tile.operand_a<units = 2>>

func.func @no_fence(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %qs = tile.alloc_shared : !q
  // expected-note@+1 {{the shared memory is this}}
  %ks = tile.alloc_shared : !k
  %marks = tile.alloc_shared : !marks
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    %p = arith.truncf %s : !s to !p
    tile.mark_read %p to %marks : !p, !marks
    tile.named_barrier sync %two threads 256
    // expected-note@+1 {{a shared tile is written by threads}}
    tile.clear_unread %ks by %marks : !k, !marks
    tile.named_barrier sync %two threads 256
    %a = tile.convert_layout %p : !p -> !a
    // expected-error@+1 {{used by asynchronous hardware without a tile.fence async_shared}}
    %next = tile.mma_async %a, %ks : !a, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %sum = tile.mma_wait 0, %next : !tile.in_flight<!s>
    tile.store %sum to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>
!s = tensor<128x64xf32, #acc>
!p = tensor<128x64xbf16, #acc>
!a = tensor<128x64xbf16, #tile.operand_a<units = 2>>

func.func @no_meeting_behind(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %qs = tile.alloc_shared : !q
  // expected-note@+1 {{the shared memory is this}}
  %ks = tile.alloc_shared : !k
  %marks = tile.alloc_shared : !marks
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    %p = arith.truncf %s : !s to !p
    tile.mark_read %p to %marks : !p, !marks
    tile.named_barrier sync %two threads 256
    // expected-error@+1 {{overwritten before all its readers are known to be done}}
    tile.clear_unread %ks by %marks : !k, !marks
    tile.fence async_shared
    %a = tile.convert_layout %p : !p -> !a
    // expected-note@+1 {{a shared tile is read by this product}}
    %next = tile.mma_async %a, %ks : !a, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %sum = tile.mma_wait 0, %next : !tile.in_flight<!s>
    tile.store %sum to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>
!s = tensor<128x64xf32, #acc>
!p = tensor<128x64xbf16, #acc>
!a = tensor<128x64xbf16, #tile.operand_a<units = 2>>

func.func @marks_again(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %qs = tile.alloc_shared : !q
  %ks = tile.alloc_shared : !k
  // expected-note@+1 {{the shared memory is this}}
  %marks = tile.alloc_shared : !marks
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    %p = arith.truncf %s : !s to !p
    tile.mark_read %p to %marks : !p, !marks
    tile.named_barrier sync %two threads 256
    // expected-note@+1 {{a shared tile is read by threads}}
    tile.clear_unread %ks by %marks : !k, !marks
    // expected-error@+1 {{overwritten before all its readers are known to be done}}
    tile.mark_read %p to %marks : !p, !marks
    tile.store %s to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

// From a row on, before all products: one meeting, for nobody reads marks.
#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!s = tensor<128x64xf32, #acc>

func.func @from_a_row(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %rows = arith.constant 40 : index
  %qs = tile.alloc_shared : !q
  %ks = tile.alloc_shared : !k
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    tile.clear_unread %ks from %rows : !k
    tile.fence async_shared
    tile.named_barrier sync %two threads 256
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    tile.store %s to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!s = tensor<128x64xf32, #acc>

func.func @from_a_row_no_fence(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %rows = arith.constant 40 : index
  %qs = tile.alloc_shared : !q
  // expected-note@+1 {{the shared memory is this}}
  %ks = tile.alloc_shared : !k
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    // expected-note@+1 {{a shared tile is written by threads}}
    tile.clear_unread %ks from %rows : !k
    tile.named_barrier sync %two threads 256
    // expected-error@+1 {{used by asynchronous hardware without a tile.fence async_shared}}
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    tile.store %s to %o[%zero, %zero] : !s, !o
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!m = memref<?x64xbf16>
!o = memref<?x64xf32>
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>
!s = tensor<128x64xf32, #acc>

func.func @from_a_row_no_meeting(%q: !m, %k: !m, %o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %rows = arith.constant 40 : index
  %qs = tile.alloc_shared : !q
  // expected-note@+1 {{the shared memory is this}}
  %ks = tile.alloc_shared : !k
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %full bytes 24576 : !tile.barrier<1>
    tile.copy_async %q[%zero, %zero] to %qs signal %full : !m, !q, !tile.barrier<1>
    tile.copy_async %k[%zero, %zero] to %ks signal %full : !m, !k, !tile.barrier<1>
  }
  role consumer warpgroups 2 registers 240 {
    tile.barrier_wait %full : !tile.barrier<1>
    // expected-error@+1 {{overwritten before all its readers are known to be done}}
    tile.clear_unread %ks from %rows : !k
    tile.fence async_shared
    // expected-note@+1 {{a shared tile is read by this product}}
    %flying = tile.mma_async %qs, %ks {transpose_rhs} : !q, !k -> !tile.in_flight<!s>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!s>
    tile.store %s to %o[%zero, %zero] : !s, !o
  }
  return
}
