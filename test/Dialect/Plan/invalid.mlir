// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected #plan.target on a module, got #plan.target<"sm_90a">}}
func.func @target_c1() attributes {plan.target = #plan.target<"sm_90a">} {
  return
}

// -----

// expected-error@+1 {{expected #plan.target on a module, got "sm_90a"}}
module @target_c1_module attributes {plan.target = "sm_90a"} {
}

// -----

// expected-error@+1 {{expected the machine sm_90a, sm_103a, sm_100a, sm_120a, sm_89, sm_86 or sm_80, got 'sm_20'}}
module @target_c2 attributes {plan.target = #plan.target<"sm_20">} {
}

// -----

// expected-error@+1 {{expected argument 0 to be a tensor or memref with dimension 2}}
func.func @extent_c2(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 2>]]>} {
  return
}

// -----

// expected-error@+1 {{expected extents of its 1 arguments, got argument 1}}
func.func @extent_c2_argument(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 1, dim = 0>]]>} {
  return
}

// -----

// expected-error@+3 {{expected argument and dim of at least 0 and a divisor of at least 1, got 0, 0 and 0}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @extent_c1(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 0>]]>} {
  return
}

// -----

// expected-error@+1 {{expected 1 to 32 blocks for each multiprocessor, got 0}}
func.func private @multiprocessors_c1() attributes {a = #plan.multiprocessors<blocks = 0>}

// -----

// expected-error@+1 {{expected argument and dim of at least 0 and a range of sizes, got 0, 1 and 5 to 4}}
func.func private @range_c1() attributes {a = #plan.range<argument = 0, dim = 1, least = 5, most = 4>}

// -----

// expected-error@+1 {{expected neither argument, dim nor per beside parts or device}}
func.func private @range_c2() attributes {a = #plan.range<argument = 0, dim = 1, least = 0, most = 1, parts = <blocks = [2], keys = 4, most = 64>>}

// -----

// expected-error@+1 {{expected neither argument, dim nor per beside parts or device}}
func.func private @range_c2_device() attributes {a = #plan.range<argument = 0, dim = 1, least = 0, most = 1, device = "memory_rate">}

// -----

// expected-error@+1 {{expected a device's "memory_rate", got "clock"}}
func.func private @range_c3() attributes {a = #plan.range<least = 0, most = 1, device = "clock">}

// -----

// expected-error@+1 {{expected a string as plan.way of a function, got 1 : i64}}
func.func private @way_c1() attributes {plan.way = 1}

// -----

// expected-error@+1 {{expected an argument of at least 0 and a page of at least 1 key, got 1 and 0}}
func.func @paged_c1(%k: memref<?x64x?x64xbf16> {plan.paged = #plan.paged<table = 1, page = 0>}, %t: memref<?x?xi32>) {
  return
}

// -----

// expected-error@+1 {{expected #plan.paged on a memref of rank 4 with pages of that size, with a memref of rank 2 of i32 or i64 as table, got #plan.paged<table = 1, page = 32> on argument 0}}
func.func @paged_c2(%k: memref<?x64x?x64xbf16> {plan.paged = #plan.paged<table = 1, page = 32>}, %t: memref<?x?xi32>) {
  return
}

// -----

// expected-error@+1 {{expected #plan.paged on a memref of rank 4}}
func.func @paged_c2_table(%k: memref<?x64x?x64xbf16> {plan.paged = #plan.paged<table = 1, page = 64>}, %t: memref<?x?xi16>) {
  return
}

// -----

// expected-error@+1 {{expected #plan.paged on a memref of rank 4}}
func.func @paged_c2_rank(%k: memref<64x?x64xbf16> {plan.paged = #plan.paged<table = 1, page = 64>}, %t: memref<?x?xi32>) {
  return
}

// -----

// expected-error@+1 {{expected arguments and a dim of at least 0, got 1, -1 and 0}}
func.func @ragged_c1(%q: memref<?x?x64xbf16> {plan.ragged = #plan.ragged<offsets = 1, most = -1, dim = 0>}, %o: memref<?xi32>) {
  return
}

// -----

// expected-error@+1 {{expected #plan.ragged on a memref of rank 2 or 3, with a memref of rank 1 of i32 or i64 as offsets and a dimension as most, got #plan.ragged<offsets = 1, most = 1, dim = 0> on argument 0}}
func.func @ragged_c2(%q: memref<?x?x?x64xbf16> {plan.ragged = #plan.ragged<offsets = 1, most = 1, dim = 0>}, %o: memref<?xi32>) {
  return
}

// -----

// expected-error@+1 {{expected #plan.ragged on a memref of rank 2 or 3}}
func.func @ragged_c2_offsets(%q: memref<?x?x64xbf16> {plan.ragged = #plan.ragged<offsets = 1, most = 1, dim = 0>}, %o: memref<?xi16>) {
  return
}

// -----

// expected-error@+1 {{expected #plan.ragged on a memref of rank 2 or 3}}
func.func @ragged_c2_most(%q: memref<?x?x64xbf16> {plan.ragged = #plan.ragged<offsets = 1, most = 1, dim = 1>}, %o: memref<?xi32>) {
  return
}

// -----

// expected-error@+3 {{expected less to be at least 0, got -1}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @extent_c1_less(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, less = -1>]]>} {
  return
}

// -----

// expected-error@+1 {{expected lists of #plan.range of dimensions of tensor or memref arguments as plan.when of a function, got}}
func.func @when_c1_flat(%q: memref<?x?xf32>) attributes {
    plan.when = [#plan.range<argument = 0, dim = 1, least = 0, most = 64>]} {
  return
}

// -----

// expected-error@+1 {{expected extents of its 1 arguments, got argument 1}}
func.func @when_c1_parts(%q: memref<?x?xf32>) attributes {
    plan.when = [[#plan.range<least = 0, most = 1, parts = <blocks = [2], keys = #plan.extent<argument = 1, dim = 2>, most = 64>>]]} {
  return
}

// -----

// expected-error@+1 {{expected lists of #plan.range of dimensions of tensor or memref arguments as plan.when of a function, got}}
func.func @when_c1(%q: memref<?x?xf32>) attributes {
    plan.when = [[#plan.range<argument = 0, dim = 2, least = 0, most = 64>]]} {
  return
}

// -----

// expected-error@+3 {{expected a multiplier from 1 to 1048576, got 1048577}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @extent_c1_multiplier(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, multiplier = 1048577>]]>} {
  return
}

// -----

// expected-error@+3 {{expected a unit from 1 to 64, got 0}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @extent_c1_unit(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, unit = 0>]]>} {
  return
}

// -----

// expected-error@+3 {{expected at most 1 to 1024 parts, got 0}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @parts_c1(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.parts<blocks = [], keys = 3, most = 0>]]>} {
  return
}

// -----

// expected-error@+3 {{expected integers and #plan.extent as blocks and keys}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @parts_c1_keys(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.parts<blocks = [], keys = "x", most = 2>]]>} {
  return
}

// -----

// expected-error@+3 {{expected the number of sequences as the first of the blocks, got none}}
// expected-error@+2 {{failed to parse Tile_KernelAttr parameter 'grid'}}
func.func @parts_c2(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.parts<blocks = [], keys = 3, most = 2, slots = true>]]>} {
  return
}

// -----

// expected-error@+1 {{expected extents of its 1 arguments, got argument 4}}
func.func @extent_c2_parts(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.parts<blocks = [2], keys = #plan.extent<argument = 4, dim = 0>, most = 2>]]>} {
  return
}

// -----

// expected-error@+1 {{expected slots of 2, 4, 8, 16, 32 or 64 and an argument of at least 0, got 3 and 0}}
func.func @packed_c1(%q: memref<?x?x?xf32> {plan.packed = #plan.packed<slots = 3, keys = 0>}) {
  return
}

// -----

// expected-error@+1 {{expected #plan.packed on a memref of rank 3 or more, with a memref of rank 2 or more as keys, got #plan.packed<slots = 8, keys = 1> on argument 0}}
func.func @packed_c2(%q: memref<?x?x?xf32> {plan.packed = #plan.packed<slots = 8, keys = 1>}) {
  return
}

// -----

// expected-error@+1 {{expected lists of #plan.range of dimensions of tensor or memref arguments as plan.when of a function, got}}
func.func @when_c1_tensor(%q: tensor<?x?xf32>) attributes {
    plan.when = [[#plan.range<argument = 0, dim = 2, least = 0, most = 64>]]} {
  return
}

// -----

// expected-error@+1 {{expected argument 0 to be a tensor or memref with dimension 4}}
func.func @when_c1_extent(%q: tensor<?x?xf32>) attributes {
    plan.when = [[#plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = 0, dim = 4>], keys = 4, most = 64>>]]} {
  return
}

// -----

// expected-error@+1 {{expected plan.target, plan.when or plan.way of the plan dialect, got 'plan.whenever'}}
func.func @dialect_c1() attributes {plan.whenever} {
  return
}

// -----

// expected-error@+1 {{expected plan.packed, plan.paged or plan.ragged of the plan dialect on an argument, got 'plan.pack'}}
func.func @dialect_c1_argument(%q: memref<?x?x?xf32> {plan.pack}) {
  return
}

// -----

// expected-error@+1 {{expected lists of #plan.range of dimensions of tensor or memref arguments as plan.when of a function, got "short"}}
func.func private @when_c1_text(tensor<?x?xf32>) attributes {plan.when = "short"}
