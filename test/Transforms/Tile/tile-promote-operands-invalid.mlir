// RUN: attn-opt %s --tile-promote-operands=shared-bytes=20000 -verify-diagnostics

// expected-error@below {{needs 28672 bytes of shared memory with 1 stages, a block has 20000 (smaller blocks or fewer stages need less)}}
func.func @budget(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
  %b = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
  %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
  return
}
