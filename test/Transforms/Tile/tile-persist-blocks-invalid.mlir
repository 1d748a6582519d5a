// RUN: attn-opt %s --tile-persist-blocks --split-input-file --verify-diagnostics

// expected-error @+1 {{expected a grid of extents for blocks that are to stay, got [[#plan.multiprocessors<blocks = 2>]]}}
func.func @device() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.multiprocessors<blocks = 2>]], schedule = <stay = true>>} {
  return
}

// -----

// expected-error @+1 {{expected no cluster of blocks that are to stay, got array<i64: 2>}}
func.func @cluster() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], cluster = [2], schedule = <stay = true>>} {
  return
}

// -----

// How many parts there are is known at the launch only.
// expected-error @+1 {{expected a grid of extents for blocks that are to stay, got [[#plan.parts}}
func.func @parts(%q: memref<?x?x?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.parts<blocks = [#plan.extent<argument = 0, dim = 0>], keys = #plan.extent<argument = 0, dim = 2, divisor = 512>, most = 64>]], schedule = <stay = true>>} {
  return
}

// -----

// A kernel reads sizes of memory, not those of a tensor.
// expected-error @+1 {{expected extents of memrefs for blocks that are to stay, got #plan.extent<argument = 0, dim = 0, divisor = 64> of 'tensor<192x128xbf16>'}}
func.func @tensor(%q: tensor<192x128xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]], schedule = <stay = true>>} {
  return
}
