// RUN: attn-opt %s --convert-tile-to-nvvm --split-input-file --verify-diagnostics

// Where no shared memory is.
func.func @barrier() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected an offset in shared memory, got -2147483648}}
  %b = tile.barrier_init 1 at -2147483648 : !tile.barrier<1>
  return
}

// -----

// expected-error@+1 {{expected places and barriers within 232448 bytes of shared memory, got an end at 1099511635968}}
func.func @place() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 1099511627776 : !tile.shared<64x64xf16, swizzle = 128>
  return
}
