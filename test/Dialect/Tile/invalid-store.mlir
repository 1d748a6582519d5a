// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @store_c1(%t: tensor<64x64xf32>, %s: !tile.shared<64x64xf32, swizzle = 128>, %i: index) {
  // expected-error@+1 {{expected no offsets into '!tile.shared<64x64xf32, swizzle = 128>', got 2}}
  tile.store %t to %s[%i, %i] : tensor<64x64xf32>, !tile.shared<64x64xf32, swizzle = 128>
  return
}

// -----

func.func @store_c2(%t: tensor<64x64xf32>, %s: !tile.shared<64x32xf32, swizzle = 128>) {
  // expected-error@+1 {{expected one stage of the shape and element type of 'tensor<64x64xf32>'}}
  tile.store %t to %s : tensor<64x64xf32>, !tile.shared<64x32xf32, swizzle = 128>
  return
}

// -----

func.func @store_c2_ring(%t: tensor<64x64xf32>, %s: !tile.shared<64x64xf32, swizzle = 128, stages = 2>) {
  // expected-error@+1 {{expected one stage of the shape and element type of 'tensor<64x64xf32>'}}
  tile.store %t to %s : tensor<64x64xf32>, !tile.shared<64x64xf32, swizzle = 128, stages = 2>
  return
}

// -----

func.func @store_c3(%t: tensor<64x64xbf16>, %m: memref<64x64xbf16>, %i: index) {
  // expected-error@+1 {{expected a tile of f32 to add to memory, got 'tensor<64x64xbf16>' and 'memref<64x64xbf16>'}}
  tile.store %t to %m[%i, %i] {add} : tensor<64x64xbf16>, memref<64x64xbf16>
  return
}

// -----

func.func @store_c3_shared(%t: tensor<64x64xf32>, %s: !tile.shared<64x64xf32, swizzle = 128>) {
  // expected-error@+1 {{expected a tile of f32 to add to memory, got 'tensor<64x64xf32>' and '!tile.shared<64x64xf32, swizzle = 128>'}}
  tile.store %t to %s {add} : tensor<64x64xf32>, !tile.shared<64x64xf32, swizzle = 128>
  return
}
