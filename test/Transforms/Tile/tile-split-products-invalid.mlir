// RUN: attn-opt %s --tile-split-products --split-input-file --verify-diagnostics

!q = memref<?x?x?x32xf32, strided<[?, ?, ?, 1]>>
!k = memref<?x64x?x32xf32, strided<[?, ?, ?, 1]>>

// A pool may be larger than all keys of a call.
// expected-error@below {{expected pages of 16-bit elements on this target, got 'memref<?x64x?x32xf32, strided<[?, ?, ?, 1]>>'}}
func.func @pages(%q: !q, %k: !k {plan.paged = #plan.paged<table = 2, page = 64>}, %table: memref<?x?xi32>, %o: memref<?x64xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %x = tile.load %q[%c0, %c0, %c0, %c0] : !q -> tensor<64x32xf32>
  %y = tile.load %k[%c0, %c0, %c0, %c0] : !k -> tensor<64x32xf32>
  %r = tile.mma %x, %y {transpose_rhs} : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x64xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  return
}

// -----

// Rows are loaded whole.
!m = memref<?x?xf32, strided<[?, 1]>>
// expected-error@below {{expected rows of static size to split, got 'memref<?x?xf32, strided<[?, 1]>>'}}
func.func @columns(%a: !m, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] : !m -> tensor<64x32xf32>
  %r = tile.mma %x, %x {transpose_rhs} : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x64xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  return
}
