// RUN: attn-opt %s --verify-roundtrip

// dialects/Tile/README.md shows the ops of this function.
func.func @example(%q: !tile.shared<128x64xbf16, swizzle = 128>, %k: !tile.shared<96x64xbf16, swizzle = 128>)
    -> tensor<128xf32, #tile.row<#tile.acc<units = 2>>> {
  %s_flying = tile.mma_async %q, %k {transpose_rhs}
      : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128>
      -> !tile.in_flight<tensor<128x96xf32, #tile.acc<units = 2>>>
  tile.mma_commit
  %s = tile.mma_wait 0, %s_flying : !tile.in_flight<tensor<128x96xf32, #tile.acc<units = 2>>>
  %m = tile.reduce max %s : tensor<128x96xf32, #tile.acc<units = 2>>
                         -> tensor<128xf32, #tile.row<#tile.acc<units = 2>>>
  return %m : tensor<128xf32, #tile.row<#tile.acc<units = 2>>>
}
