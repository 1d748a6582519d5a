// RUN: not attn-opt %s --tile-simulate --split-input-file 2>&1 | FileCheck %s

// CHECK: expected a tile of at most 1048576 elements, got 1000000x1000000
func.func @tiles(%x: f32, %o: memref<1000000x1000000xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<1000000x1000000xf32>
  tile.store %t to %o[%zero, %zero] : tensor<1000000x1000000xf32>, memref<1000000x1000000xf32>
  return
}

// -----

// CHECK: expected a place of at most 1048576 elements, got 1x65536x1000000
func.func @places() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<65536x1000000xbf16, swizzle = 128>
  return
}
