// RUN: attn-opt %s --tile-persist-blocks --split-input-file --verify-diagnostics

// expected-error @+1 {{expected a grid of extents for blocks that are to stay, got [[#tile.multiprocessors<blocks = 2>]]}}
func.func @device() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#tile.multiprocessors<blocks = 2>]], schedule = <stay = true>>} {
  return
}

// -----

// expected-error @+1 {{expected no cluster of blocks that are to stay, got array<i64: 2>}}
func.func @cluster() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], cluster = [2], schedule = <stay = true>>} {
  return
}

// -----

// How many parts there are is known at the launch only.
// expected-error @+1 {{expected a grid of extents for blocks that are to stay, got [[#tile.parts}}
func.func @parts(%q: memref<?x?x?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#tile.parts<blocks = [#tile.extent<argument = 0, dim = 0>], keys = #tile.extent<argument = 0, dim = 2, divisor = 512>, most = 64>]], schedule = <stay = true>>} {
  return
}
