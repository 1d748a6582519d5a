// RUN: attn-opt %s --convert-tile-to-nvvm --split-input-file --verify-diagnostics

#kernel = #tile.kernel<warpgroups = 1, grid = []>

func.func @not_allocated() attributes {tile.kernel = #kernel} {
  // expected-error@+1 {{expected an offset, which tile-allocate-shared decides, got none}}
  %s = tile.alloc_shared : !tile.shared<128x128xbf16, swizzle = 128, stages = 2>
  return
}

// -----

// expected-error@+1 {{expected argument 0 to be strided with contiguous last dimension}}
func.func @contiguous(%k: memref<?x64xbf16, strided<[?, ?]>>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128>
  %full = tile.barrier_init 1 at 65536 : !tile.barrier<1>
  tile.copy_async %k[%i, %i] to %s signal %full
      : memref<?x64xbf16, strided<[?, ?]>>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.barrier<1>
  return
}

// -----

func.func @users(%k: memref<?xf32>, %i: index, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected tile ops, memref.load, memref.store or memref.dim of a constant as users of a kernel argument}}
  memref.assume_alignment %k, 16 : memref<?xf32>
  return
}

// -----

func.func @dimension(%k: memref<?xf32>, %o: memref<?xi32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %five = arith.constant 5 : index
  // expected-error@+1 {{expected tile ops, memref.load, memref.store or memref.dim of a constant as users of a kernel argument}}
  %size = memref.dim %k, %five : memref<?xf32>
  return
}

// -----

// expected-error@+1 {{expected memref and scalar arguments, got 'tensor<4xf32>'}}
func.func @arguments(%k: tensor<4xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// -----

func.func @moves(%x: bf16) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.broadcast %x : bf16 -> tensor<64x64xbf16, #tile.acc<units = 1>>
  // expected-error@+2 {{expected layouts that hold the same elements in the same registers}}
  // expected-error@+1 {{failed to legalize operation 'tile.convert_layout'}}
  %u = tile.convert_layout %t : tensor<64x64xbf16, #tile.acc<units = 1>>
      -> tensor<64x64xbf16, #tile.blocked<vector = 8, lanes = 8, warps = 4>>
  return
}

// -----

// Elements without a width.
func.func @moves_numbers() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = arith.constant dense<1> : tensor<64x64xindex, #tile.acc<units = 1>>
  // expected-error@+2 {{expected layouts that hold the same elements in the same registers}}
  // expected-error@+1 {{failed to legalize operation 'tile.convert_layout'}}
  %u = tile.convert_layout %t : tensor<64x64xindex, #tile.acc<units = 1>>
      -> tensor<64x64xindex, #tile.blocked<vector = 8, lanes = 8, warps = 4>>
  return
}

// -----

// Lanes exchange pairs of 16 bits.
func.func @moves_wide(%x: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.broadcast %x : f32 -> tensor<64x64xf32, #tile.acc<units = 1>>
  // expected-error@+2 {{expected layouts that hold the same elements in the same registers}}
  // expected-error@+1 {{failed to legalize operation 'tile.convert_layout'}}
  %u = tile.convert_layout %t : tensor<64x64xf32, #tile.acc<units = 1>>
      -> tensor<64x64xf32, #tile.chunked<#tile.acc<units = 1>>>
  return
}

// -----

func.func @without_layout(%x: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{failed to legalize operation 'tile.broadcast'}}
  %t = tile.broadcast %x : f32 -> tensor<64x64xf32>
  return
}

// -----

func.func @cleared_conditionally(%n: index, %c: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@+2 {{failed to legalize operation 'tile.clear_unread'}}
  // expected-error@+1 {{expected no condition, which tile-make-rings makes a branch of}}
  tile.clear_unread %s from %n if %c : !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

#a = #tile.operand_a<units = 1>
func.func @unmarked() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128>
  %p = arith.constant dense<1.0> : tensor<64x64xbf16, #a>
  // expected-error@+2 {{failed to legalize operation 'tile.clear_unread'}}
  // expected-error@+1 {{expected marks of what is read, got 'tensor<64x64xbf16, #tile.operand_a<units = 1>>'}}
  tile.clear_unread %s by %p : !tile.shared<64x64xbf16, swizzle = 128>, tensor<64x64xbf16, #a>
  return
}

// -----

// expected-error@+1 {{expected places and barriers within 232448 bytes of shared memory, got an end at 2147483655}}
func.func @far() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %b = tile.barrier_init 1 at 2147483647 : !tile.barrier<1>
  return
}

// -----

// expected-error@+1 {{expected places and barriers within 232448 bytes of shared memory, got an end at 9223372036854775807}}
func.func @farthest() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %b = tile.barrier_init 1 at 9223372036854775807 : !tile.barrier<1>
  return
}

// -----

func.func @packed_gather(%q: memref<?x?x?xf32, strided<[?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 0>}, %m: index)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected an argument that is not packed}}
  %x = memref.load %q[%m, %m, %m] : memref<?x?x?xf32, strided<[?, ?, 1]>>
  return
}

// -----

// expected-error@+1 {{expected boxes of a multiple of 64 rows of argument 0, got 32}}
func.func @packed_box(%q: memref<?x?x?x64xbf16> {plan.packed = #plan.packed<slots = 64, keys = 0>}, %m: index)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<32x64xbf16, swizzle = 128>
  %full = tile.barrier_init 1 {offset = 4096} : !tile.barrier<1>
  tile.copy_async %q[%m, %m, %m, %m] to %s signal %full
      : memref<?x?x?x64xbf16>, !tile.shared<32x64xbf16, swizzle = 128>, !tile.barrier<1>
  return
}

// -----

func.func @packed_store_async(%q: memref<?x?x?x64xbf16> {plan.packed = #plan.packed<slots = 8, keys = 0>}, %m: index)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@+1 {{expected an argument that is not packed}}
  tile.store_async %s to %q[%m, %m, %m, %m] : !tile.shared<64x64xbf16, swizzle = 128>, memref<?x?x?x64xbf16>
  return
}

// -----

// Two rows of a thread are half of a register.
func.func @bytes(%a: i8) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{failed to legalize operation 'tile.broadcast'}}
  %t = tile.broadcast %a : i8 -> tensor<64xi8, #tile.row<#tile.acc<units = 1>>>
  return
}

// -----

func.func @stored_chunks(%x: bf16) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %s = tile.alloc_shared at 0 : !tile.shared<64x64xbf16, swizzle = 128>
  %t = tile.broadcast %x : bf16 -> tensor<64x64xbf16, #tile.acc<units = 1>>
  %c = tile.convert_layout %t : tensor<64x64xbf16, #tile.acc<units = 1>> -> tensor<64x64xbf16, #tile.chunked<#tile.acc<units = 1>>>
  // expected-error@+2 {{failed to legalize operation 'tile.store'}}
  // expected-error@+1 {{expected 8- or 16-bit elements in layout #tile.acc or #tile.operand_a, or 32-bit ones in #tile.acc, got 'tensor<64x64xbf16, #tile.chunked<#tile.acc<units = 1>>>'}}
  tile.store %c to %s : tensor<64x64xbf16, #tile.chunked<#tile.acc<units = 1>>>, !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

func.func @fragments(%x: f32, %o: memref<?x64x64xf32> {tile.fragments}, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<64x32xf32, #tile.acc<units = 1>>
  // expected-error@+2 {{failed to legalize operation 'tile.store'}}
  // expected-error@+1 {{expected whole tiles in #tile.acc, with 16 rows for each warp, where memory has tile.fragments, got 'tensor<64x32xf32}}
  tile.store %t to %o[%m, %zero, %zero] {add} : tensor<64x32xf32, #tile.acc<units = 1>>, memref<?x64x64xf32>
  return
}
