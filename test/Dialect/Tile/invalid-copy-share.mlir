// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @copy_share_c1(%k: memref<?x64xbf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %place = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128>
  tile.specialize
  role producer warpgroups 1 registers 24 {
    // expected-error@+1 {{expected a block without roles: each thread of it has a share}}
    tile.copy_share %k[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  }
  role consumer warpgroups 1 registers 240 {
  }
  return
}

// -----

func.func @box_c2_share(%k: memref<?x64xbf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %place = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
  // expected-error@+1 {{expected one stage (see tile.stage)}}
  tile.copy_share %k[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
  return
}

// -----

func.func @any_row_c1(%rows: tensor<128xi1, #tile.row<#tile.acc<units = 2>>>) {
  // expected-error@+1 {{expected i1 for each row of products that threads wait for}}
  %some = tile.any_row %rows : tensor<128xi1, #tile.row<#tile.acc<units = 2>>>
  return
}
