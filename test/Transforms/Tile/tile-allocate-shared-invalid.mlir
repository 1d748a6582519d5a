// RUN: attn-opt %s --tile-allocate-shared --split-input-file --verify-diagnostics

// expected-error@below {{expected at most 232448 bytes of shared memory, got 262144 (smaller blocks or fewer stages need less)}}
func.func @tiles() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<128x128xbf16, swizzle = 128, stages = 8>
  return
}

// -----

// Two blocks on a multiprocessor have half of its shared memory each, less what the machine takes for a block.
// expected-error@below {{expected at most 115712 bytes of shared memory, got 131072 (smaller blocks or fewer stages need less)}}
func.func @resident() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <resident = 2>>} {
  %s = tile.alloc_shared : !tile.shared<128x128xbf16, swizzle = 128, stages = 4>
  return
}

// -----

// The barriers are what is too much.
// expected-error@below {{expected at most 232448 bytes of shared memory, got 232456 (smaller blocks or fewer stages need less)}}
func.func @barriers() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<1816x64xbf16, swizzle = 128>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  return
}
