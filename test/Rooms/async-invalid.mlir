// RUN: attn-opt %s --attn-verify-room=room=async --split-input-file --verify-diagnostics

// Every copy and every product is in flight until somebody waits for it.

func.func @copy(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xf16, swizzle = 128>
  // expected-error@+1 {{'tile.copy' op in room 6 'async': expected copies and products in flight, got 'tile.copy'}}
  tile.copy %x[%i, %i] to %s : memref<128x64xf16>, !tile.shared<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @part_begin(%i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.part_begin' op in room 6 'async': expected a loop that begins at a number of its role, got 'tile.part_begin'}}
  %begin = tile.part_begin %i for %i, %i
  return
}

// -----

func.func @product(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xf16, swizzle = 128>
  // expected-error@+1 {{'tile.mma' op in room 6 'async': expected copies and products in flight, got 'tile.mma'}}
  %o = tile.mma %s, %s : !tile.shared<64x64xf16, swizzle = 128>, !tile.shared<64x64xf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @copy_in_a_role(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xf16, swizzle = 128>
  tile.specialize
  role load warpgroups 1 registers 24 {
    // expected-error@+1 {{'tile.copy' op in room 6 'async': expected copies and products in flight, got 'tile.copy'}}
    tile.copy %x[%i, %i] to %s : memref<128x64xf16>, !tile.shared<64x64xf16, swizzle = 128>
  }
  role compute warpgroups 1 registers 24 {
  }
  return
}

// -----

func.func @product_in_a_loop(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xf16, swizzle = 128>
  scf.for %j = %i to %i step %i {
    // expected-error@+1 {{'tile.mma' op in room 6 'async': expected copies and products in flight, got 'tile.mma'}}
    %o = tile.mma %s, %s : !tile.shared<64x64xf16, swizzle = 128>, !tile.shared<64x64xf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<units = 1>>
  }
  return
}

// -----

func.func @no_layout(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.load' op in room 6 'async': expected a layout for every tile, got tensor<64x64xf16>}}
  %t = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<64x64xf16>
  return
}

// -----

func.func @constant(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'arith.constant' op in room 6 'async': expected a layout for every tile, got tensor<64xf32>}}
  %t = arith.constant dense<0.0> : tensor<64xf32>
  return
}

// -----

func.func @coordinates(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.coord' op in room 6 'async': expected a layout for every tile, got tensor<64x64xindex>}}
  %t = tile.coord 1 from %i : tensor<64x64xindex>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 6 'async': expected at most 232448 bytes of shared memory, got 262144}}
func.func @rings_too_long(%x: memref<128x64xf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<1024x64xf16, swizzle = 128, stages = 2>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 6 'async': expected a kernel with tile.kernel, got a function without}}
func.func @no_kernel(%x: memref<128x64xf16>) {
  return
}

// -----

func.func @thread(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{'llvm.add' op in room 6 'async': expected ops of func, tile, arith, math, scf, memref, affine, gpu, tensor, cf, got one of llvm}}
  %y = llvm.add %c, %c : i32
  return
}

// -----

func.func @instruction(%x: memref<128x64xf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'nvvm.barrier0' op in room 6 'async': expected ops of func, tile, arith, math, scf, memref, affine, gpu, tensor, cf, got one of nvvm}}
  nvvm.barrier0
  return
}

// -----

func.func @no_offset() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.alloc_shared' op in room 6 'async': expected an offset in shared memory, got none}}
  %s = tile.alloc_shared : !tile.shared<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @barrier_without_offset() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tile.barrier_init' op in room 6 'async': expected an offset in shared memory, got none}}
  %s = tile.barrier_init 1 : !tile.barrier<1>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 6 'async': expected a program for each role, got one that lists them in tile.roles}}
func.func @roles() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#tile.role<name = "a", warpgroups = 1, registers = 24>]} {
  return
}

// -----

func.func @marks(%p: tensor<64x64xf16, #tile.acc<units = 1>>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xf16, swizzle = 128>
  // expected-error@+1 {{'tile.clear_unread' op in room 6 'async': expected marks of what is read, got tensor<64x64xf16, #tile.acc<units = 1>>}}
  tile.clear_unread %s by %p : !tile.shared<64x64xf16, swizzle = 128>, tensor<64x64xf16, #tile.acc<units = 1>>
  return
}

// -----

func.func @scalar_of_a_tile(%p: tensor<64x64xf16, #tile.acc<units = 1>>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'tensor.extract' op in room 6 'async': expected structured control flow and no scalars of tiles, got 'tensor.extract'}}
  %s = tensor.extract %p[%i, %i] : tensor<64x64xf16, #tile.acc<units = 1>>
  return
}

// -----

func.func @late() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{'arith.constant' op in room 6 'async': expected an op that is not late, got tile.delay = 1 : i64}}
  %c0 = arith.constant {tile.delay = 1} 0 : index
  return
}

// -----

func.func @clear_condition(%n: index, %c: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xf16, swizzle = 128>
  // expected-error@+1 {{'tile.clear_unread' op in room 6 'async': expected a branch around what is cleared, got a condition}}
  tile.clear_unread %s from %n if %c : !tile.shared<64x64xf16, swizzle = 128>
  return
}
