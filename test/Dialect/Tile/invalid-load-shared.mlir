// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @load_shared_c1(%s: !tile.shared<64x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected one stage of the rows, columns or more, and element type of 'tensor<64x96xbf16>', got '!tile.shared<64x64xbf16, swizzle = 128>'}}
  %t = tile.load_shared %s : !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x96xbf16>
  return
}

// -----

func.func @load_shared_c1_type(%s: !tile.shared<64x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected one stage of the rows, columns or more, and element type}}
  %t = tile.load_shared %s : !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf16>
  return
}

// -----

func.func @load_shared_c1_ring(%s: !tile.shared<64x64xbf16, swizzle = 128, stages = 2>) {
  // expected-error@+1 {{expected one stage of the rows, columns or more, and element type}}
  %t = tile.load_shared %s : !tile.shared<64x64xbf16, swizzle = 128, stages = 2> -> tensor<64x64xbf16>
  return
}

// -----

func.func @load_shared_c1_rows(%s: !tile.shared<64x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected one stage of the rows, columns or more, and element type}}
  %t = tile.load_shared %s : !tile.shared<64x64xbf16, swizzle = 128> -> tensor<32x64xbf16>
  return
}
