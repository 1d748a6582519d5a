// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected tile.scratch, tile.zeroed or tile.fragments of the tile dialect on an argument, got 'tile.scrap'}}
func.func @dialect_c1_argument(%s: memref<3x?xf32> {tile.scrap}) {
  return
}

// -----

// expected-error@+1 {{expected tile.kernel, tile.roles, tile.divided, tile.role, tile.delay or tile.plan of the tile dialect, got 'tile.kernels'}}
func.func @dialect_c1() attributes {tile.kernels} {
  return
}

// -----

// expected-error@+1 {{expected #tile.kernel on a function, got 3}}
func.func @kernel_c1() attributes {tile.kernel = 3 : i32} {
  return
}

// -----

// expected-error@+1 {{expected a kernel without results, got 1}}
func.func @kernel_c1_results(%i: index) -> index attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return %i : index
}

// -----

// expected-error@+2 {{expected 1 to 64 stages, got 65}}
func.func @kernel_c8() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 65>>} {
  return
}

// -----

// expected-error@+2 {{expected 1 to 8 warpgroups, got 9}}
func.func @kernel_c3() attributes {
    tile.kernel = #tile.kernel<warpgroups = 9, grid = []>} {
  return
}

// -----

// expected-error@+2 {{expected a list of integers, #plan.extent, #plan.multiprocessors and #plan.parts per grid dimension, got "x"}}
func.func @kernel_c4() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = ["x"]>} {
  return
}

// -----

// expected-error@+2 {{expected at most 3 grid dimensions, got 4}}
func.func @kernel_c4_dimensions() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[1], [1], [1], [1]]>} {
  return
}

// -----

// expected-error@+1 {{expected tile.scratch with an integer, #plan.extent, #plan.multiprocessors or #plan.parts for each dimension of a memref, got [3] on 'memref<3x?xf32>'}}
func.func @kernel_c5(%q: memref<?xf32>, %s: memref<3x?xf32> {tile.scratch = [3]}) {
  return
}

// -----

// expected-error@+1 {{expected extents of its 1 arguments, got argument 2}}
func.func @kernel_c5_extent(%s: memref<3x?xf32> {tile.scratch = [3, #plan.extent<argument = 2, dim = 0>]}) {
  return
}

// -----

// expected-error@+1 {{expected a kernel with a body of one block, got 0}}
func.func private @kernel_c6() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>}

// -----

// expected-error@+1 {{expected tile.divided as a unit on a kernel, got 2 : i64}}
func.func @roles_c2() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided = 2} {
  return
}

// -----

// expected-error@+1 {{expected tile.divided as a unit on a kernel, got unit}}
func.func @roles_c2_none() attributes {tile.divided} {
  return
}

// -----

// expected-error@+1 {{expected tile.roles with #tile.role of different names, each of 1 to 8 warpgroups, on a kernel, got}}
func.func @roles_c1() attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>,
    tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 24>,
                  #tile.role<name = "a", warpgroups = 1, registers = 240>]} {
  return
}

// -----

// expected-error@+1 {{expected tile.roles with #tile.role of different names, each of 1 to 8 warpgroups, on a kernel, got [3]}}
func.func @roles_c1_entries() attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>, tile.roles = [3]} {
  return
}

// -----

// expected-error@+1 {{expected tile.roles with #tile.role of different names, each of 1 to 8 warpgroups, on a kernel}}
func.func @roles_c1_none() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#tile.role<name = "a", warpgroups = -1, registers = 24>]} {
  return
}

// -----

func.func @role_c1() attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>,
    tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 24>]} {
  // expected-error@+1 {{expected one of the kernel's tile.roles as its tile.role, got "b"}}
  tile.sync {tile.role = "b"}
  return
}

// -----

func.func @delay_c1() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected an i64 from 1 to 32 as tile.delay of an op in a kernel that ends no block, got 0 : i64}}
  %c0 = arith.constant {tile.delay = 0} 0 : index
  return
}

// -----

func.func @delay_c1_far() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected an i64 from 1 to 32 as tile.delay of an op in a kernel that ends no block, got 33 : i64}}
  tile.sync {tile.delay = 33}
  return
}

// -----

func.func @delay_c1_terminator() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected an i64 from 1 to 32 as tile.delay of an op in a kernel that ends no block, got 1 : i64}}
  return {tile.delay = 1}
}

// -----

func.func @delay_c1_no_kernel() {
  // expected-error@+1 {{expected an i64 from 1 to 32 as tile.delay of an op in a kernel that ends no block, got 1 : i64}}
  %c0 = arith.constant {tile.delay = 1} 0 : index
  return
}

// -----

// expected-error@+2 {{expected integers from 1 to 2147483647 in the grid, got 0}}
func.func @kernel_c7_none() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[2], [0]]>} {
  return
}

// -----

// expected-error@+2 {{expected integers from 1 to 2147483647 in the grid, got -1}}
func.func @kernel_c7() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[-1]]>} {
  return
}

// -----

// expected-error@+2 {{expected integers from 1 to 2147483647 in the grid, got 2147483648}}
func.func @kernel_c7_much() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[2147483648]]>} {
  return
}

// -----

// expected-error@+2 {{expected integers from 1 to 2147483647 in the grid, got 3 : ui32}}
func.func @kernel_c7_type() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [3 : ui32]]>} {
  return
}

// -----

// expected-error@+2 {{expected one to three extents of a cluster of at most 8 blocks, got array<i64: 4, 4>}}
func.func @kernel_c9() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], cluster = [4, 4]>} {
  return
}

// -----

// expected-error@+1 {{expected tile.zeroed beside tile.scratch, got it on argument 0 without}}
func.func @kernel_c10(%s: memref<3xf32> {tile.zeroed}) {
  return
}

// -----

// expected-error@+1 {{expected tile.fragments on memory of f32 with tiles of whole fragments, 16 x 8, as dense last dimensions, got 'memref<?x24x8xf32>'}}
func.func @kernel_c12(%s: memref<?x24x8xf32> {tile.fragments}) {
  return
}

// -----

// expected-error@+1 {{expected tile.fragments on memory of f32}}
func.func @kernel_c12_type(%s: memref<?x64x64xbf16> {tile.fragments}) {
  return
}

// -----

// expected-error@+1 {{expected tile.fragments on memory of f32}}
func.func @kernel_c12_stride(%s: memref<?x64x64xf32, strided<[?, 128, 1]>> {tile.fragments}) {
  return
}

// -----

func.func @kernel_c12_load(%s: memref<?x64x64xf32> {tile.fragments}, %i: index) {
  // expected-error@+1 {{expected memory with tile.fragments to be gathered or added to}}
  %x = memref.load %s[%i, %i, %i] : memref<?x64x64xf32>
  return
}

// -----

// The attribute is looked at before the function's own type is.
// expected-error@+1 {{expected #tile.kernel on a function, got #tile.kernel<warpgroups = 1, grid = [[1], [], []]>}}
"llvm.func"() <{function_type = (memref<?xf32>) -> (), sym_name = "kernel_c1_type"}> ({
  "llvm.return"() : () -> ()
}) {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[1], [], []]>} : () -> ()

// -----

// expected-error@+1 {{expected a tail of at most 31 blocks behind blocks that stay, got 1 behind none}}
func.func @kernel_c11() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], schedule = <tail = 1>>} {
  return
}

// -----

// expected-error@+1 {{expected a tail of at most 31 blocks behind blocks that stay, got -1}}
func.func @kernel_c11_least() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], schedule = <stay = true, tail = -1>>} {
  return
}

// -----

// expected-error@+1 {{expected at most 256 columns of the query to keep, in multiples of 16, got 40}}
func.func @kernel_c11_keep() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], schedule = <keep = 40>>} {
  return
}

// -----

// expected-error@+1 {{expected 1 to 8 blocks on a multiprocessor, or 1 that stays, got 9}}
func.func @kernel_c11_resident() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], schedule = <resident = 9>>} {
  return
}

// -----

// expected-error@+1 {{expected 1 to 8 blocks on a multiprocessor, or 1 that stays, got 2 that stay}}
func.func @kernel_c11_stay() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], schedule = <stay = true, resident = 2>>} {
  return
}

// -----

// expected-error@+1 {{expected at most 256 columns of the query to keep, in multiples of 16, got 272}}
func.func @kernel_c11_most() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]], schedule = <keep = 272>>} {
  return
}

// -----

// More warpgroups than a block may have.
// expected-error@+1 {{expected tile.roles with #tile.role of different names, each of 1 to 8 warpgroups, on a kernel}}
func.func @roles_too_many() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#tile.role<name = "compute", warpgroups = 17, registers = 240>]} {
  return
}
