// RUN: attn-opt %s --attn-verify-room=room=tile --split-input-file --verify-diagnostics

// Kernels on register tiles that nobody has given a place, a layout or a role.

func.func @place(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.alloc_shared' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.alloc_shared'}}
  %s = tile.alloc_shared : !tile.shared<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @barrier(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.barrier_init' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.barrier_init'}}
  %b = tile.barrier_init 1 : !tile.barrier<1>
  return
}

// -----

func.func @slot(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.slot' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.slot'}}
  %b = tile.slot : !tile.slot<2>
  return
}

// -----

func.func @meeting(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.sync' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.sync'}}
  tile.sync
  return
}

// -----

func.func @fence(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.fence' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.fence'}}
  tile.fence async_shared
  return
}

// -----

func.func @wait(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.mma_wait' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.mma_wait'}}
  tile.mma_wait 0
  return
}

// -----

func.func @commit(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.mma_commit' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.mma_commit'}}
  tile.mma_commit
  return
}

// -----

func.func @warpgroup(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.warpgroup' op in room 4 'tile': expected register tiles without places, layouts and roles, got 'tile.warpgroup'}}
  %w = tile.warpgroup
  return
}

// -----

func.func @layout(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.load' op in room 4 'tile': expected tiles without a layout, got tensor<64x64xf16, #tile.acc<units = 1>>}}
  %t = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<64x64xf16, #tile.acc<units = 1>>
  return
}

// -----

func.func @layout_of_a_constant(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'arith.constant' op in room 4 'tile': expected tiles without a layout, got tensor<64x64xf16, #tile.acc<units = 1>>}}
  %t = arith.constant dense<0.0> : tensor<64x64xf16, #tile.acc<units = 1>>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 4 'tile': expected a kernel with tile.kernel, got a function without}}
func.func @no_kernel(%x: memref<128x64xf16>) {
  return
}

// -----

func.func @attention_op(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %a = arith.constant dense<0.0> : tensor<8x16xf32>
  %m = arith.constant dense<0.0> : tensor<8xf32>
  %o = arith.constant dense<0.0> : tensor<8x16xf16>
  // expected-error@+1 {{'attn.normalize' op in room 4 'tile': expected ops of func, tile, arith, math, scf, memref, affine, gpu, got one of attn}}
  %r = attn.normalize %a, %m, %m outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}

// -----

func.func @slice(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<64x64xf16>
  // expected-error@+1 {{'tensor.extract_slice' op in room 4 'tile': expected ops of func, tile, arith, math, scf, memref, affine, gpu, got one of tensor}}
  %u = tensor.extract_slice %t[0, 0] [8, 64] [1, 1] : tensor<64x64xf16> to tensor<8x64xf16>
  return
}

// -----

func.func @vector() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'arith.constant' op in room 4 'tile': expected numbers, tiles and memory, got vector<16xf32>}}
  %v = arith.constant dense<1.0> : vector<16xf32>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 4 'tile': expected numbers, tiles and memory, got !llvm.ptr}}
func.func @pointer(%p: !llvm.ptr) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// -----

func.func @late() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{in room 4 'tile': expected an op that is not late, got tile.delay = 1 : i64}}
  %c0 = arith.constant {tile.delay = 1} 0 : index
  return
}
