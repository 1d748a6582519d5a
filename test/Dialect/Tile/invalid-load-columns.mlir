// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @load_columns_c1(%m: memref<?xbf16>, %i: index) {
  // expected-error@+1 {{expected a matrix of f32, without a layout or in #tile.acc, got 'tensor<64x32xbf16>'}}
  %t = tile.load_columns %m[%i] : memref<?xbf16> -> tensor<64x32xbf16>
  return
}

// -----

func.func @load_columns_c1_layout(%s: !tile.shared<64xf32>) {
  // expected-error@+1 {{expected a matrix of f32, without a layout or in #tile.acc}}
  %t = tile.load_columns %s : !tile.shared<64xf32> -> tensor<64x4xf32, #tile.quad<#tile.acc<units = 1>>>
  return
}

// -----

func.func @load_columns_c2(%s: !tile.shared<32xf32>) {
  // expected-error@+1 {{expected one stage of a row of f32 for the columns of 'tensor<64x40xf32>', without offsets, got '!tile.shared<32xf32>' and 0 offsets}}
  %t = tile.load_columns %s : !tile.shared<32xf32> -> tensor<64x40xf32>
  return
}

// -----

func.func @load_columns_c2_ring(%s: !tile.shared<64xf32, stages = 2>) {
  // expected-error@+1 {{expected one stage of a row of f32}}
  %t = tile.load_columns %s : !tile.shared<64xf32, stages = 2> -> tensor<64x64xf32>
  return
}

// -----

func.func @load_columns_c2_matrix(%s: !tile.shared<8x64xf32, swizzle = 128>) {
  // expected-error@+1 {{expected one stage of a row of f32}}
  %t = tile.load_columns %s : !tile.shared<8x64xf32, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @load_columns_c2_offsets(%s: !tile.shared<64xf32>, %i: index) {
  // expected-error@+1 {{without offsets, got '!tile.shared<64xf32>' and 1 offsets}}
  %t = tile.load_columns %s[%i] : !tile.shared<64xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @global_c1_columns(%m: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected one offset per dimension of 'memref<?x?xf32>', got 1}}
  %t = tile.load_columns %m[%i] : memref<?x?xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c1_row(%s: !tile.shared<64xf32>, %k: !tile.shared<64x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected matrices (one stage of a ring) as operands, got '!tile.shared<64xf32>'}}
  %t = tile.mma %s, %k : !tile.shared<64xf32>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}
