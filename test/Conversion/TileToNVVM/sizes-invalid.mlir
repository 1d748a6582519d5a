// RUN: attn-opt %s --convert-tile-to-nvvm --split-input-file --verify-diagnostics

// Code is made by the element: of no more than a thread can hold.
func.func @tile(%a: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected at most 1024 elements of a tile in a thread, got 4096 of 'tensor<64x8192xf32, #tile.acc<warpgroups = 1>>'}}
  %t = tile.broadcast %a : f32 -> tensor<64x8192xf32, #tile.acc<warpgroups = 1>>
  return
}

// -----

func.func @place() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected at most 232448 bytes of shared memory, got 8388608}}
  %s = tile.alloc_shared : !tile.shared<65536x64xbf16, swizzle = 128>
  return
}
