// RUN: attn-opt %s --tile-simulate=shapes=64 --split-input-file --verify-diagnostics

// expected-error@+1 {{expected memory and numbers as arguments of a kernel, got !tile.shared<64x64xbf16, swizzle = 128>}}
func.func @place(%x: !tile.shared<64x64xbf16, swizzle = 128>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// -----

// expected-error@+1 {{expected memory of numbers that arrays hold, got i4}}
func.func @narrow(%x: memref<64xi4>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}
