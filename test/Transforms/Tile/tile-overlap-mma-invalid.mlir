// RUN: attn-opt %s --tile-overlap-mma --split-input-file --verify-diagnostics

func.func @steps(%p: tensor<64x24xf32, #tile.acc<units = 1>>, %v: !tile.shared<24x64xbf16, swizzle = 128>, %q: !tile.shared<64x24xbf16, swizzle = 32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{expected K in multiples of 16 in a product that is to be in flight, got 24}}
  %o = tile.mma %q, %v : !tile.shared<64x24xbf16, swizzle = 32>, !tile.shared<24x64xbf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @contiguous(%q: !tile.shared<64x64xf8E4M3FN, swizzle = 64>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{expected 8-bit operands with K contiguous (lhs not transposed, rhs transposed) in a product that is to be in flight, got rhs not transposed}}
  %o = tile.mma %q, %q : !tile.shared<64x64xf8E4M3FN, swizzle = 64>, !tile.shared<64x64xf8E4M3FN, swizzle = 64> -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}
