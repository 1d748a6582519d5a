// RUN: attn-opt %s --tile-promote-operands --split-input-file --verify-diagnostics

// What is cleared for one product is not what another reads.
func.func @other_lhs(%v: memref<?x64xbf16, strided<[?, 1]>>, %p: tensor<64x64xbf16>, %o: memref<?x64xf32, strided<[?, 1]>>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %other = arith.addf %p, %p : tensor<64x64xbf16>
  %t = tile.load %v[%c0, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
  // expected-error@+1 {{expected products of its values to follow, and one with its lhs}}
  %w = tile.clear_unread %t by %other : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xbf16>
  %r = tile.mma %p, %w : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  return
}

// -----

// What is cleared from a row on is a rhs: threads read no tile in shared memory.
func.func @from_a_row(%v: memref<?x64xbf16, strided<[?, 1]>>, %n: index, %o: memref<?x64xbf16, strided<[?, 1]>>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %v[%c0, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
  // expected-error@+1 {{expected products in its block that have it as their rhs, got 'tile.store'}}
  %w = tile.clear_unread %t from %n : tensor<64x64xbf16> -> tensor<64x64xbf16>
  tile.store %w to %o[%c0, %c0] : tensor<64x64xbf16>, memref<?x64xbf16, strided<[?, 1]>>
  return
}
