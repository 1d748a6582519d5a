// RUN: attn-opt %s --tile-assign-layouts --split-input-file -verify-diagnostics

func.func @columns(%q: memref<?x?xf32>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{has no layout: expected columns in multiples of 8, got 7}}
  %a = tile.load %q[%i, %i] : memref<?x?xf32> -> tensor<64x7xf32>
  return
}

// -----

func.func @rank(%a: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{has no layout: expected a tile of rank 2, got rank 3}}
  %b = tile.broadcast %a : f32 -> tensor<64x8x8xf32>
  return
}

// -----

func.func @left_operand(%a: f32, %k: !tile.shared<8x64xbf16, swizzle = 128>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %p = tile.broadcast %a : f32 -> tensor<64x8xf32>
  %h = arith.truncf %p : tensor<64x8xf32> to tensor<64x8xbf16>
  // expected-error@below {{has no layout: expected columns in multiples of 16, got 8}}
  %s = tile.mma %h, %k : tensor<64x8xbf16>, !tile.shared<8x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @rows(%q: !tile.shared<128x64xbf16, swizzle = 128>, %k: !tile.shared<96x64xbf16, swizzle = 128>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{expected 64 rows for 1 warpgroups, got 128}}
  %s = tile.mma %q, %k {transpose_rhs} : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128> -> tensor<128x96xf32>
  return
}

// -----

func.func @resource() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{expected dense elements in a tile, got dense_resource<rows>}}
  %a = arith.constant dense_resource<rows> : tensor<64xf32>
  return
}

// -----

// Four columns are the parts of a row's sum, which no product makes.
func.func @four_columns(%p: !tile.shared<64x64xbf16, swizzle = 128>, %v: !tile.shared<64x4xbf16, swizzle = 32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{expected columns of a product in multiples of 8, got 4}}
  %s = tile.mma %p, %v : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x4xbf16, swizzle = 32> -> tensor<64x4xf32>
  return
}

// -----

func.func @transposed(%a: f32, %k: !tile.shared<64x64xbf16, swizzle = 128>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %p = tile.broadcast %a : f32 -> tensor<64x64xf32>
  %h = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xbf16>
  // expected-error@below {{expected a left operand in registers as M x K, got 'tensor<64x64xbf16, #tile.acc<units = 1>>' transposed}}
  %s = tile.mma %h, %k {transpose_lhs} : tensor<64x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @other_layout(%q: !tile.shared<128x64xbf16, swizzle = 128>, %k: !tile.shared<96x64xbf16, swizzle = 128>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  // expected-error@below {{expected a product in the kernel's layout #tile.acc<units = 2>, got #tile.acc<units = 1>}}
  %s = tile.mma %q, %k {transpose_rhs} : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128> -> tensor<128x96xf32, #tile.acc<units = 1>>
  return
}
