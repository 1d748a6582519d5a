// RUN: attn-opt %s --tile-assign-roles --split-input-file --verify-diagnostics

// expected-error@below {{expected at most 7 warpgroups beside the producer's, got 8 (smaller blocks need fewer)}}
func.func @warpgroups() attributes {tile.kernel = #tile.kernel<warpgroups = 8, grid = []>} {
  %p = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

// expected-error@below {{expected a role that is not elected among its tile.roles}}
func.func @nobody_computes() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>]} {
  %p = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

!tile = !tile.shared<64x64xbf16, swizzle = 128>

func.func @elected_product() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %p = tile.alloc_shared : !tile
  // expected-error@below {{expected a role that is not elected, got "load"}}
  %s = tile.mma %p, %p {tile.role = "load"} : !tile, !tile -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @room(%q: memref<?x64xbf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@below {{'tile.sync' op does not belong to level 'placed': roles are made here}}
  tile.sync
  return
}

// -----

func.func @destination(%q: memref<?x64xbf16>, %i: index, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  scf.for %j = %i to %n step %i {
    %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
    // expected-error@below {{expected a tile.alloc_shared of the kernel as destination}}
    tile.copy %q[%j, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  }
  return
}
