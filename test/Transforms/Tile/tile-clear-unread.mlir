// RUN: attn-opt %s --tile-assign-delays --tile-pipeline-steps --canonicalize --cse | FileCheck %s --check-prefix=STEPS
// RUN: attn-opt %s --tile-assign-delays --tile-pipeline-steps --tile-promote-operands --tile-assign-layouts --canonicalize --cse | FileCheck %s --check-prefix=PLACED
// RUN: attn-opt %s --tile-assign-delays --tile-pipeline-steps --tile-promote-operands --tile-assign-layouts --canonicalize --cse --tile-assign-roles --tile-make-rings --tile-overlap-mma | FileCheck %s --check-prefix=ASYNC

!q = memref<?x64xbf16, strided<[?, 1]>>
!acc = tensor<64x64xf32>

// A product that comes a step later clears what it does not read then: whether it does goes with it.
// STEPS-LABEL: func.func @steps
// STEPS-DAG: %[[NO:.*]] = arith.constant false
// STEPS-DAG: %[[YES:.*]] = arith.constant true
// STEPS: scf.for {{.*}} iter_args(%{{.*}}, %[[P:.*]] = %{{.*}}, %[[AT:.*]] = %{{.*}}, %[[IF:.*]] = %[[YES]])
// STEPS:   tile.mma {{.*}} {transpose_rhs}
// STEPS:   %[[V:.*]] = tile.load %{{.*}}[%[[AT]], %{{.*}}]
// STEPS:   %[[W:.*]] = tile.clear_unread %[[V]] by %[[P]] if %[[IF]]
// STEPS:   tile.mma %[[P]], %[[W]]
// STEPS:   scf.yield {{.*}}, %[[NO]]

// In place, between the copy and the product.
// PLACED-LABEL: func.func @steps
// PLACED: scf.for
// PLACED:   tile.mma {{.*}} {transpose_rhs}
// PLACED:   tile.copy %{{.*}} to %[[PLACE:[a-z0-9]+]]
// PLACED:   tile.clear_unread %[[PLACE]] by %[[P:[a-z0-9]+]] if %{{.*}} : !tile.shared<64x64xbf16, swizzle = 128>, tensor<64x64xbf16, #tile.acc<units = 1>>
// PLACED:   %[[A:.*]] = tile.convert_layout %[[P]]
// PLACED:   tile.mma %[[A]], %[[PLACE]]

// Behind the wait for the stage; the scores stay in flight.
// ASYNC-LABEL: func.func @steps
// ASYNC: %[[MARKS:.*]] = tile.alloc_shared : !tile.shared<8x8xi32, swizzle = 32>
// ASYNC: scf.for
// ASYNC:   tile.mma_async {{.*}} {tile.role = "consumer", transpose_rhs}
// ASYNC-NOT: tile.mma_wait
// ASYNC:   tile.barrier_wait %{{.*}} {tile.role = "consumer"}
// ASYNC:   %[[STAGE:.*]] = tile.stage
// ASYNC:   scf.if
// ASYNC-NEXT: tile.mark_read %{{.*}} to %[[MARKS]] {tile.role = "consumer"}
// ASYNC-NEXT: arith.constant
// ASYNC-NEXT: tile.named_barrier sync %{{.*}} threads 128 {tile.role = "consumer"}
// ASYNC-NEXT: tile.clear_unread %[[STAGE]] by %[[MARKS]] {tile.role = "consumer"}
// ASYNC-NEXT: tile.fence async_shared {tile.role = "consumer"}
// ASYNC-NEXT: arith.constant
// ASYNC-NEXT: tile.named_barrier sync %{{.*}} threads 128 {tile.role = "consumer"}
// ASYNC:   tile.mma_async %{{.*}}, %[[STAGE]]
// ASYNC:   tile.mma_wait 1
func.func @steps(%q: !q, %k: !q, %v: !q, %o: memref<?x64xf32, strided<[?, 1]>>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero : f32 -> !acc
  %qt = tile.load %q[%c0, %c0] : !q -> tensor<64x64xbf16>
  %kt = tile.load %k[%n, %c0] : !q -> tensor<64x64xbf16>
  %s = tile.mma %qt, %kt {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> !acc
  %p = arith.truncf %s : !acc to tensor<64x64xbf16>
  %vt = tile.load %v[%n, %c0] : !q -> tensor<64x64xbf16>
  %w = tile.clear_unread %vt by %p : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xbf16>
  %first = tile.mma %p, %w, %none : tensor<64x64xbf16>, tensor<64x64xbf16>, !acc -> !acc
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %first) -> !acc {
    %ki = tile.load %k[%i, %c0] : !q -> tensor<64x64xbf16>
    %si = tile.mma %qt, %ki {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> !acc
    %pi = arith.truncf %si : !acc to tensor<64x64xbf16>
    %vi = tile.load %v[%i, %c0] : !q -> tensor<64x64xbf16>
    %next = tile.mma %pi, %vi, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, !acc -> !acc
    scf.yield %next : !acc
  }
  tile.store %sum to %o[%c0, %c0] : !acc, memref<?x64xf32, strided<[?, 1]>>
  return
}

// What ends early is cleared from there on, for all products that read it, before the first one. Nobody marks anything.
// PLACED-LABEL: func.func @ends
// PLACED: scf.for
// PLACED:   tile.copy %{{.*}} to %[[PLACE:[a-z0-9]+]]
// PLACED:   tile.clear_unread %[[PLACE]] from %[[ROWS:.*]] if %[[ENDS:.*]] : !tile.shared<64x64xbf16, swizzle = 128>
// PLACED:   tile.mma %{{.*}}, %[[PLACE]] {transpose_rhs}
// PLACED-NOT: tile.clear_unread
// PLACED:   tile.mma %{{.*}}, %[[PLACE]], %{{.*}}

// ASYNC-LABEL: func.func @ends
// ASYNC: scf.for
// ASYNC:   tile.barrier_wait %{{.*}} {tile.role = "consumer"}
// ASYNC:   %[[STAGE:.*]] = tile.stage
// ASYNC:   scf.if
// ASYNC-NEXT: tile.clear_unread %[[STAGE]] from %{{.*}} {tile.role = "consumer"}
// ASYNC-NEXT: tile.fence async_shared {tile.role = "consumer"}
// ASYNC-NEXT: arith.constant
// ASYNC-NEXT: tile.named_barrier sync %{{.*}} threads 128 {tile.role = "consumer"}
// ASYNC-NOT: tile.mark_read
// ASYNC:   tile.mma_async %{{.*}}, %[[STAGE]] {tile.role = "consumer", transpose_rhs}
// ASYNC:   tile.mma_async %{{.*}}, %[[STAGE]], %{{.*}} {tile.role = "consumer"}
func.func @ends(%q: !q, %k: !q, %o: memref<?x64xf32, strided<[?, 1]>>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero : f32 -> !acc
  %qt = tile.load %q[%c0, %c0] : !q -> tensor<64x64xbf16>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %none) -> !acc {
    %rest = arith.subi %n, %i : index
    %rows = arith.minsi %rest, %c64 : index
    %ends = arith.cmpi slt, %rows, %c64 : index
    %all = tile.load %k[%i, %c0] : !q -> tensor<64x64xbf16>
    %ki = tile.clear_unread %all from %rows if %ends : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %si = tile.mma %qt, %ki {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> !acc
    %pi = arith.truncf %si : !acc to tensor<64x64xbf16>
    %next = tile.mma %pi, %ki, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, !acc -> !acc
    scf.yield %next : !acc
  }
  tile.store %sum to %o[%c0, %c0] : !acc, memref<?x64xf32, strided<[?, 1]>>
  return
}

// What a block reads once, of which loops read all, is cleared once, where it is read.
// PLACED-LABEL: func.func @owned
// PLACED:   tile.copy %{{.*}} to %[[PLACE:[a-z0-9_]+]]
// PLACED:   tile.clear_unread %[[PLACE]] from %{{.*}} if %{{.*}} : !tile.shared<64x64xbf16, swizzle = 128>
// PLACED:   scf.for
// PLACED-NOT: tile.clear_unread
// PLACED:     tile.mma %[[PLACE]], %{{.*}} {transpose_rhs}
// PLACED:   return
func.func @owned(%q: !q, %k: !q, %o: memref<?x64xf32, strided<[?, 1]>>, %n: index, %ends: i1) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> !acc
  %kt = tile.load %k[%c0, %c0] : !q -> tensor<64x64xbf16>
  %kc = tile.clear_unread %kt from %n if %ends : tensor<64x64xbf16> -> tensor<64x64xbf16>
  %s = scf.for %i = %c0 to %n step %c64 iter_args(%a = %init) -> (!acc) {
    %qt = tile.load %q[%i, %c0] : !q -> tensor<64x64xbf16>
    %p = tile.mma %kc, %qt, %a {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16>, !acc -> !acc
    scf.yield %p : !acc
  }
  tile.store %s to %o[%c0, %c0] : !acc, memref<?x64xf32, strided<[?, 1]>>
  return
}
