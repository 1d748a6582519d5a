// RUN: attn-opt %s --tile-promote-operands -verify-diagnostics

func.func @rows(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
  // expected-error@below {{has no place: expected two dimensions, the first a multiple of 8, got 97, 64}}
  %b = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<97x64xbf16>
  %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<97x64xbf16> -> tensor<128x97xf32>
  return
}
