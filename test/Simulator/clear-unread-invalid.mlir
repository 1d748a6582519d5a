// RUN: attn-opt %s --tile-simulate --verify-diagnostics

#a = #tile.operand_a<units = 1>
// expected-error@+1 {{'tile.clear_unread': expected marks of what is read, or a first row to clear, and no condition, as tile-make-rings makes them}}
func.func @unmarked() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %p = arith.constant dense<1.0> : tensor<64x64xbf16, #a>
  tile.clear_unread %s by %p : !tile.shared<64x64xbf16, swizzle = 128>, tensor<64x64xbf16, #a>
  return
}
