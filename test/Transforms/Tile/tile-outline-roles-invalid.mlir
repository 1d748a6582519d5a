// RUN: attn-opt %s --tile-outline-roles --split-input-file --verify-diagnostics

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
!out = memref<?x64xf32, strided<[?, 1]>>

func.func @tile_of_another_role(%o: !out) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 240>,
                  #tile.role<name = "b", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %p = tile.alloc_shared : !tile
  // expected-error@below {{expected role "b" to read what role "a" computes in shared memory, got a value}}
  %s = tile.mma %p, %p {tile.role = "a"} : !tile, !tile -> !result
  tile.store %s to %o[%c0, %c0] {tile.role = "b"} : !result, !out
  return
}

// -----

// expected-error@below {{expected tile.roles of 1 to 8 warpgroups, got 9}}
func.func @warpgroups() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "a", warpgroups = 4, registers = 40>,
                  #tile.role<name = "b", warpgroups = 5, registers = 40>]} {
  tile.sync {tile.role = "a"}
  return
}

// -----

func.func @scalar_from_a_tile(%q: memref<?x64xbf16>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %full = tile.barrier_init 1 : !tile.barrier<1>
  %t = tile.load %q[%i, %i] : memref<?x64xbf16> -> tensor<64x64xbf16>
  // expected-error@below {{expected scalars that do not come from tiles in elected role "load"}}
  %e = tensor.extract %t[%i, %i] : tensor<64x64xbf16>
  %zero = arith.constant 0.0 : bf16
  %live = arith.cmpf oeq, %e, %zero : bf16
  scf.if %live {
    tile.barrier_expect %full bytes 64 {tile.role = "load"} : !tile.barrier<1>
  }
  return
}

// -----

func.func @blocks(%n: index, %live: i1) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "compute", warpgroups = 1, registers = 240>,
                  #tile.role<name = "load", warpgroups = 1, registers = 40>]} {
  // expected-error@below {{expected regions of one block with a terminator around or among ops of roles}}
  scf.execute_region {
    cf.br ^next
  ^next:
    tile.sync {tile.role = "compute"}
    scf.yield
  }
  return
}

// -----

// expected-error@below {{expected tile.roles of at least two roles, got 1}}
func.func @one_role() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 40>]} {
  tile.sync {tile.role = "a"}
  return
}

// -----

// expected-error@below {{expected tile.roles of 1 to 8 warpgroups and registers in multiples of 8 from 24 to 256, got 1 and -1 in "b"}}
func.func @registers_of_a_role() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 40>,
                  #tile.role<name = "b", warpgroups = 1, registers = -1>]} {
  tile.sync {tile.role = "a"}
  return
}

// -----

// expected-error@below {{expected tile.roles of at most 64512 registers, got 65536}}
func.func @registers_of_a_block() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 32>,
                  #tile.role<name = "b", warpgroups = 2, registers = 240>]} {
  tile.sync {tile.role = "a"}
  return
}
