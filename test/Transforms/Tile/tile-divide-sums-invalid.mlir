// RUN: attn-opt %s --tile-divide-sums --split-input-file --verify-diagnostics

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!acc = tensor<64x64xf32, #tile.acc<units = 1>>

// expected-error@below {{expected loops with two sums to divide, got none}}
func.func @none() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided} {
  %p = tile.alloc_shared : !tile
  %s = tile.mma %p, %p : !tile, !tile -> !acc
  return
}

// -----

// expected-error@below {{expected at most 3 warpgroups for each sum, got 4}}
func.func @warpgroups() attributes {tile.kernel = #tile.kernel<warpgroups = 4, grid = []>, tile.divided} {
  return
}

// -----

// expected-error@below {{expected no tile.roles where sums are to be divided}}
func.func @roles() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided,
    tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 24>]} {
  return
}

// -----

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!acc = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @one(%n: index, %a: !tile) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided} {
  %zero = arith.constant dense<0.0> : !acc
  scf.for %i = %n to %n step %n iter_args(%s = %zero) -> !acc {
    // expected-error@below {{expected two sums of a loop to divide, got 1}}
    %t = tile.mma %a, %a, %s : !tile, !tile, !acc -> !acc
    scf.yield %t : !acc
  }
  return
}

// -----

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!acc = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @apart(%n: index, %a: !tile) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided} {
  %zero = arith.constant dense<0.0> : !acc
  %r:2 = scf.for %i = %n to %n step %n iter_args(%s = %zero, %u = %zero) -> (!acc, !acc) {
    %t = tile.mma %a, %a, %s : !tile, !tile, !acc -> !acc
    // expected-error@below {{expected one of two sums to have a product of its own, and the other none}}
    %v = tile.mma %a, %a, %u : !tile, !tile, !acc -> !acc
    scf.yield %t, %v : !acc, !acc
  }
  return
}

// -----

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!acc = tensor<64x64xf32, #tile.acc<units = 1>>
!narrow = tensor<64x64xbf16, #tile.acc<units = 1>>
!lhs = tensor<64x64xbf16, #tile.operand_a<units = 1>>

// Weights as f32 take twice the place.
func.func @wide(%n: index, %a: !tile) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided} {
  %zero = arith.constant dense<0.0> : !acc
  %r:2 = scf.for %i = %n to %n step %n iter_args(%s = %zero, %u = %zero) -> (!acc, !acc) {
    %p = tile.mma %a, %a : !tile, !tile -> !acc
    %w = arith.truncf %p : !acc to !narrow
    %l = tile.convert_layout %w : !narrow -> !lhs
    %t = tile.mma %l, %a, %s : !lhs, !tile, !acc -> !acc
    %q = tile.mma %a, %a : !tile, !tile -> !acc
    %d = arith.mulf %p, %q : !acc
    %x = arith.truncf %d : !acc to !narrow
    %m = tile.convert_layout %x : !narrow -> !lhs
    // expected-error@below {{expected what both sums have in common to be a tile of 16 bits in #tile.acc, got 'tensor<64x64xf32}}
    %v = tile.mma %m, %a, %u : !lhs, !tile, !acc -> !acc
    scf.yield %t, %v : !acc, !acc
  }
  return
}

// -----

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!acc = tensor<64x64xf32, #tile.acc<units = 1>>
!narrow = tensor<64x64xbf16, #tile.acc<units = 1>>
!lhs = tensor<64x64xbf16, #tile.operand_a<units = 1>>

func.func @stored(%n: index, %a: !tile, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.divided} {
  %zero = arith.constant dense<0.0> : !acc
  %r:2 = scf.for %i = %n to %n step %n iter_args(%s = %zero, %u = %zero) -> (!acc, !acc) {
    %p = tile.mma %a, %a : !tile, !tile -> !acc
    %w = arith.truncf %p : !acc to !narrow
    %l = tile.convert_layout %w : !narrow -> !lhs
    %t = tile.mma %l, %a, %s : !lhs, !tile, !acc -> !acc
    %q = tile.mma %a, %a : !tile, !tile -> !acc
    %e = arith.extf %w : !narrow to !acc
    %d = arith.mulf %e, %q : !acc
    %x = arith.truncf %d : !acc to !narrow
    %m = tile.convert_layout %x : !narrow -> !lhs
    %v = tile.mma %m, %a, %u : !lhs, !tile, !acc -> !acc
    scf.yield %t, %v : !acc, !acc
  }
  // expected-error@below {{expected what is stored to come from one of the kernel's sums}}
  tile.store %zero to %o[%n, %n] : !acc, memref<?x64xf32>
  return
}
