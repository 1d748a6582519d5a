// RUN: attn-opt %s --attn-verify-room=room=placed --split-input-file --verify-diagnostics

// Every tile has a layout and every operand of a product its place; nothing is in flight.

func.func @no_layout(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.load' op in room 5 'placed': expected a layout for every tile, got tensor<64x64xf16>}}
  %t = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<64x64xf16>
  return
}

// -----

func.func @constant(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'arith.constant' op in room 5 'placed': expected a layout for every tile, got tensor<64xf32>}}
  %t = arith.constant dense<0.0> : tensor<64xf32>
  return
}

// -----

func.func @coordinates(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.coord' op in room 5 'placed': expected a layout for every tile, got tensor<64x64xindex>}}
  %t = tile.coord 1 from %i : tensor<64x64xindex>
  return
}

// -----

func.func @rhs_in_registers(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<64x64xf16, swizzle = 128>
  %t = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<64x64xf16, #tile.acc<units = 1>>
  // expected-error@+1 {{'tile.mma' op in room 5 'placed': expected a right operand in shared memory, got tensor<64x64xf16, #tile.acc<units = 1>>}}
  %o = tile.mma %s, %t : !tile.shared<64x64xf16, swizzle = 128>, tensor<64x64xf16, #tile.acc<units = 1>> -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @both_in_registers(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<64x64xf16, #tile.acc<units = 1>>
  %a = tile.convert_layout %t : tensor<64x64xf16, #tile.acc<units = 1>> -> tensor<64x64xf16, #tile.operand_a<units = 1>>
  // expected-error@+1 {{'tile.mma' op in room 5 'placed': expected a right operand in shared memory, got tensor<64x64xf16, #tile.acc<units = 1>>}}
  %o = tile.mma %a, %t : tensor<64x64xf16, #tile.operand_a<units = 1>>, tensor<64x64xf16, #tile.acc<units = 1>> -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @barrier(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.barrier_init' op in room 5 'placed': expected synchronous copies and products, got 'tile.barrier_init'}}
  %b = tile.barrier_init 1 : !tile.barrier<1>
  return
}

// -----

func.func @slot(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.slot' op in room 5 'placed': expected synchronous copies and products, got 'tile.slot'}}
  %b = tile.slot : !tile.slot<2>
  return
}

// -----

func.func @product_in_flight(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared : !tile.shared<64x64xf16, swizzle = 128>
  // expected-error@+1 {{'tile.mma_async' op in room 5 'placed': expected synchronous copies and products, got 'tile.mma_async'}}
  %o = tile.mma_async %s, %s : !tile.shared<64x64xf16, swizzle = 128>, !tile.shared<64x64xf16, swizzle = 128> -> !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>
  return
}

// -----

func.func @wait(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.mma_wait' op in room 5 'placed': expected synchronous copies and products, got 'tile.mma_wait'}}
  tile.mma_wait 0
  return
}

// -----

func.func @warpgroup(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.warpgroup' op in room 5 'placed': expected synchronous copies and products, got 'tile.warpgroup'}}
  %w = tile.warpgroup
  return
}

// -----

func.func @roles(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  // expected-error@+1 {{'tile.specialize' op in room 5 'placed': expected synchronous copies and products, got 'tile.specialize'}}
  tile.specialize
  role load warpgroups 1 registers 24 {
  }
  role compute warpgroups 1 registers 24 {
  }
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 5 'placed': expected a kernel with tile.kernel, got a function without}}
func.func @no_kernel(%x: memref<128x64xf16>) {
  return
}

// -----

// Nor do threads read numbers of columns from anywhere else.
func.func @global_columns(%m: memref<?xf32>, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'tile.load_columns' op in room 5 'placed': expected numbers of columns in shared memory, got memref<?xf32>}}
  %t = tile.load_columns %m[%c0] : memref<?xf32> -> tensor<64x64xf32, #tile.acc<units = 1>>
  tile.store %t to %o[%c0, %c0] : tensor<64x64xf32, #tile.acc<units = 1>>, memref<?x64xf32>
  return
}
