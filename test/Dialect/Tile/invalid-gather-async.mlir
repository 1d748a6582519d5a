// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a multiple of 8 rows for as many warps or a part of that, got 82 and 4}}
func.func private @rows_c1() -> !tile.rows<82, warps = 4>

// -----

// expected-error@+1 {{expected a multiple of 8 rows for as many warps or a part of that, got 24 and 3}}
func.func private @rows_c1_warps() -> !tile.rows<24, warps = 3>

// -----

!pool = memref<?x1x?x64xbf16>

func.func @find_rows_c1(%k: !pool, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected an argument with plan.paged, got 'memref<?x1x?x64xbf16>'}}
  %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<64, warps = 4>
  return
}

// -----

!pool = memref<?x1x?x64xbf16>

func.func @find_rows_c2(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %t: memref<?x?xi32>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected a role of 4 warps, none of them elected, got 8 warps in a role of 1 warpgroups}}
  %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<64, warps = 8>
  return
}

// -----

!pool = memref<?x1x?x64xbf16>

func.func @find_rows_c2_elected(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %t: memref<?x?xi32>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    // expected-error@+1 {{expected a role of 4 warps, none of them elected, got 4 warps in a role of 1 warpgroups, elected}}
    %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<64, warps = 4>
  }
  role consumer warpgroups 1 registers 240 {
  }
  return
}

// -----

!pool = memref<?x1x?x64xbf16>
!keys = !tile.shared<64x64xbf16, swizzle = 128>

func.func @gather_async_c1(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %t: memref<?x?xi32>, %i: index, %j: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !keys
  %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<64, warps = 4>
  // expected-error@+1 {{expected 64 rows that tile.find_rows finds at the same position, got '!tile.rows<64, warps = 4>'}}
  tile.gather_async %k[%i, %i, %j, %i] at %rows to %s : !pool, !tile.rows<64, warps = 4>, !keys
  return
}

// -----

!pool = memref<?x1x?x64xbf16>
!keys = !tile.shared<64x64xbf16, swizzle = 128>

func.func @gather_async_c1_fewer(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %t: memref<?x?xi32>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !keys
  %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<56, warps = 4>
  // expected-error@+1 {{expected 64 rows that tile.find_rows finds at the same position, got '!tile.rows<56, warps = 4>'}}
  tile.gather_async %k[%i, %i, %i, %i] at %rows to %s : !pool, !tile.rows<56, warps = 4>, !keys
  return
}

// -----

!pool = memref<?x1x?x20xbf16>
!keys = !tile.shared<64x32xbf16, swizzle = 64>

func.func @gather_async_c2(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %t: memref<?x?xi32>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !keys
  %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<64, warps = 4>
  // expected-error@+1 {{expected rows of a constant multiple of 16 bytes, at most 512, got 'memref<?x1x?x20xbf16>' and '!tile.shared<64x32xbf16, swizzle = 64>'}}
  tile.gather_async %k[%i, %i, %i, %i] at %rows to %s : !pool, !tile.rows<64, warps = 4>, !keys
  return
}

// -----

!pool = memref<?x1x?x512xbf16>
!keys = !tile.shared<64x512xbf16, swizzle = 128>

func.func @gather_async_c2_wide(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %t: memref<?x?xi32>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !keys
  %rows = tile.find_rows %k[%i, %i, %i, %i] : !pool -> !tile.rows<64, warps = 4>
  // expected-error@+1 {{expected rows of a constant multiple of 16 bytes, at most 512, got}}
  tile.gather_async %k[%i, %i, %i, %i] at %rows to %s : !pool, !tile.rows<64, warps = 4>, !keys
  return
}
