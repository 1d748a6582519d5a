// RUN: attn-opt %s --split-input-file --verify-diagnostics

#acc = #tile.acc<units = 1>

func.func @add_async_c1(%t: tensor<64x64xbf16, #acc>, %o: memref<?x64xbf16>, %i: index) {
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@+1 {{expected a tile of f32 in #tile.acc, got 'tensor<64x64xbf16, #tile.acc<units = 1>>'}}
  tile.add_async %t to %o[%i, %i] through %s : tensor<64x64xbf16, #acc>, memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

func.func @add_async_c1_layout(%t: tensor<64x64xf32>, %o: memref<?x64xf32>, %i: index) {
  %s = tile.alloc_shared : !tile.shared<64x64xf32, swizzle = 128>
  // expected-error@+1 {{expected a tile of f32 in #tile.acc, got 'tensor<64x64xf32>'}}
  tile.add_async %t to %o[%i, %i] through %s : tensor<64x64xf32>, memref<?x64xf32>, !tile.shared<64x64xf32, swizzle = 128>
  return
}

// -----

#acc = #tile.acc<units = 1>

func.func @add_async_c2(%t: tensor<64x64xf32, #acc>, %o: memref<?x64xf32>, %i: index) {
  %s = tile.alloc_shared : !tile.shared<64x32xf32, swizzle = 128>
  // expected-error@+1 {{expected a place of whole slabs, of the shape and element type of 'tensor<64x64xf32, #tile.acc<units = 1>>', got '!tile.shared<64x32xf32, swizzle = 128>'}}
  tile.add_async %t to %o[%i, %i] through %s : tensor<64x64xf32, #acc>, memref<?x64xf32>, !tile.shared<64x32xf32, swizzle = 128>
  return
}

// -----

#acc = #tile.acc<units = 1>

func.func @add_async_c2_slabs(%t: tensor<64x16xf32, #acc>, %o: memref<?x16xf32>, %i: index) {
  %s = tile.alloc_shared : !tile.shared<64x16xf32, swizzle = 128>
  // expected-error@+1 {{expected a place of whole slabs}}
  tile.add_async %t to %o[%i, %i] through %s : tensor<64x16xf32, #acc>, memref<?x16xf32>, !tile.shared<64x16xf32, swizzle = 128>
  return
}

// -----

#acc = #tile.acc<units = 1>

func.func @add_async_c3(%t: tensor<64x64xf32, #acc>, %o: memref<?x64xf32>, %i: index) {
  %s = tile.alloc_shared : !tile.shared<64x64xf32, swizzle = 128>
  // expected-note@+1 {{it is used here}}
  tile.store %t to %s : tensor<64x64xf32, #acc>, !tile.shared<64x64xf32, swizzle = 128>
  // expected-error@+1 {{expected a place that only additions use, got 'tile.store'}}
  tile.add_async %t to %o[%i, %i] through %s : tensor<64x64xf32, #acc>, memref<?x64xf32>, !tile.shared<64x64xf32, swizzle = 128>
  return
}
