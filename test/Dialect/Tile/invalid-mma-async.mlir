// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @mma_async_c1(%a: !tile.shared<64x32xbf16, swizzle = 64>, %b: !tile.shared<32x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected a result in layout #tile.acc, got 'tensor<64x64xf32>'}}
  %c = tile.mma_async %a, %b : !tile.shared<64x32xbf16, swizzle = 64>, !tile.shared<32x64xbf16, swizzle = 128>
      -> !tile.in_flight<tensor<64x64xf32>>
  return
}

// -----

func.func @mma_async_c2(%a: !tile.shared<64x24xbf16, swizzle = 128>, %b: !tile.shared<24x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected K in multiples of 16, got 24}}
  %c = tile.mma_async %a, %b : !tile.shared<64x24xbf16, swizzle = 128>, !tile.shared<24x64xbf16, swizzle = 128>
      -> !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>
  return
}

// -----

func.func @mma_async_c3(%a: !tile.shared<64x32xf8E4M3FN, swizzle = 32>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64>) {
  // expected-error@+1 {{expected 8-bit operands with K contiguous (lhs not transposed, rhs transposed)}}
  %c = tile.mma_async %a, %b : !tile.shared<64x32xf8E4M3FN, swizzle = 32>, !tile.shared<32x64xf8E4M3FN, swizzle = 64>
      -> !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>
  return
}

// -----

// Reading an accumulator in flight does not even parse.
func.func @in_flight(%c: !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>) {
  // expected-error@+1 {{must be floating-point-like}}
  %d = arith.addf %c, %c : !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>
  return
}
