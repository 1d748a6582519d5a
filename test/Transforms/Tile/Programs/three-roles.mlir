// RUN: attn-opt %s --tile-assign-roles --tile-make-rings --tile-overlap-mma --tile-outline-roles --canonicalize --cse --tile-allocate-shared --tile-simulate="shapes=64x64,330x64,64x64 seeds=200" | FileCheck %s

// Three roles: one copies, one makes weights and stores them to shared memory, one adds them up. The ring of weights is filled
// by threads; that of keys is read by two roles, and both give a stage back.

// CHECK:     %[[KEYS:.*]] = tile.alloc_shared {{.*}} stages = 2
// CHECK:     tile.barrier_init 1
// CHECK:     tile.barrier_init 2
// CHECK:     role load warpgroups 1 registers 24 elected {
// CHECK:     role scores warpgroups 1 registers 200 {
// CHECK:       scf.for
// CHECK:         tile.mma_async {{.*}} {transpose_rhs}
// CHECK:         tile.barrier_wait previous
// CHECK:         tile.store
// CHECK-NEXT:    tile.fence async_shared
// CHECK-NEXT:    tile.barrier_arrive {{.*}} {each}
// CHECK:     role sums warpgroups 1 registers 200 {
// CHECK:       scf.for
// CHECK-COUNT-2: tile.barrier_wait
// CHECK:         tile.mma_async
// CHECK-COUNT-2: tile.barrier_arrive
// CHECK:       tile.store

!in = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
!half = tensor<64x64xbf16, #tile.acc<units = 1>>

func.func @three_roles(%q: !in, %k: !in, %o: !out) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "scores", warpgroups = 1, registers = 200>,
                  #tile.role<name = "sums", warpgroups = 1, registers = 200>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %k, %c0 : !in
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !tile
  %ps = tile.alloc_shared : !tile
  %none = arith.constant dense<0.0> : !result
  tile.copy %q[%c0, %c0] to %qs : !in, !tile
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %none) -> !result {
    tile.copy %k[%i, %c0] to %ks : !in, !tile
    %s = tile.mma %qs, %ks {transpose_rhs} : !tile, !tile -> !result
    %h = arith.truncf %s : !result to !half
    tile.store %h to %ps : !half, !tile
    %sum = tile.mma %ps, %ks, %acc {tile.role = "sums"} : !tile, !tile, !result -> !result
    scf.yield %sum : !result
  }
  tile.store %r to %o[%c0, %c0] {tile.role = "sums"} : !result, !out
  return
}
