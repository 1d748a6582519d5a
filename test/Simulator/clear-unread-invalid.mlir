// RUN: attn-opt %s --tile-simulate --split-input-file --verify-diagnostics

#a = #tile.operand_a<units = 1>
// expected-error@+1 {{'tile.clear_unread': expected a shared tile, marks of what is read or a first row to clear, and no condition, as tile-make-rings makes them}}
func.func @unmarked() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %p = arith.constant dense<1.0> : tensor<64x64xbf16, #a>
  tile.clear_unread %s by %p : !tile.shared<64x64xbf16, swizzle = 128>, tensor<64x64xbf16, #a>
  return
}

// -----

// A tile in registers is none that threads have cleared.
// expected-error@+1 {{'tile.clear_unread': expected a shared tile, marks of what is read or a first row to clear}}
func.func @registers(%n: index, %o: memref<?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<64x64xbf16>
  %w = tile.clear_unread %v from %n : tensor<64x64xbf16> -> tensor<64x64xbf16>
  tile.store %w to %o[%zero, %zero] : tensor<64x64xbf16>, memref<?x64xbf16>
  return
}
