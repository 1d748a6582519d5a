// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected rows in multiples of 128 (64 for each of 2 warpgroups), got 64}}
func.func private @layout_c1(tensor<64x64xf32, #tile.acc<warpgroups = 2>>)

// -----

// expected-error@+1 {{expected a tile of rank 1, got rank 2}}
func.func private @layout_c2(tensor<64x64xf32, #tile.row<#tile.acc<warpgroups = 1>>>)

// -----

// expected-error@+1 {{expected columns in multiples of 16, got 24}}
func.func private @layout_c3(tensor<64x24xbf16, #tile.operand_a<warpgroups = 1>>)

// -----

// expected-error@+1 {{expected elements of 8 or 16 bits in #tile.operand_a, got 'f32'}}
func.func private @layout_c4(tensor<64x64xf32, #tile.operand_a<warpgroups = 1>>)

// -----

// expected-error@+1 {{expected 4 columns in #tile.quad, got 8}}
func.func private @layout_c5(tensor<64x8xf32, #tile.quad<#tile.acc<warpgroups = 1>>>)

// -----

// expected-error@+1 {{expected positive vector and warps and lanes that divide 32}}
func.func private @layout_c6(tensor<64x64xf32, #tile.blocked<vector = 8, lanes = 5, warps = 4>>)

// -----

// expected-error@+1 {{expected two dimensions, the first a multiple of 8}}
func.func private @shared_c1(!tile.shared<12x64xbf16, swizzle = 128>)

// -----

// expected-error@+1 {{expected elements of 8, 16 or 32 bits, got 'f64'}}
func.func private @shared_c2(!tile.shared<64x64xf64, swizzle = 128>)

// -----

// expected-error@+1 {{expected swizzle 128, 64 or 32, got 16}}
func.func private @shared_c3(!tile.shared<64x64xbf16, swizzle = 16>)

// -----

// expected-error@+1 {{expected stages of a multiple of 1024 bytes, got 256}}
func.func private @shared_c4(!tile.shared<8x16xbf16, swizzle = 32, stages = 2>)

// -----

// expected-error@+1 {{expected 1 to 64 stages, got 65}}
func.func private @barrier_c1(!tile.barrier<65>)

// -----

func.func @barrier_c2(%full: !tile.barrier<2>) {
  // expected-error@+1 {{expected a slot of 2 stages, got 1}}
  tile.barrier_wait %full : !tile.barrier<2>
  return
}

// -----

func.func @barrier_expect_c1(%full: !tile.barrier<1>) {
  // expected-error@+1 {{expected fewer than 1048576 bytes, got 1048576}}
  tile.barrier_expect %full bytes 1048576 : !tile.barrier<1>
  return
}

// -----

// expected-error@+1 {{expected #tile.kernel on a function, got 3}}
func.func @kernel_c1() attributes {tile.kernel = 3 : i32} {
  return
}

// -----

// expected-error@+1 {{expected argument 0 to be a memref with dimension 2}}
func.func @kernel_c2(%q: memref<?x?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#tile.extent<argument = 0, dim = 2>]]>} {
  return
}

// -----

// expected-error@+2 {{expected 1 to 8 warpgroups, got 9}}
func.func @kernel_c3() attributes {
    tile.kernel = #tile.kernel<warpgroups = 9, grid = []>} {
  return
}

// -----

// expected-error@+2 {{expected a list of integers and #tile.extent per grid dimension, got "x"}}
func.func @kernel_c4() attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = ["x"]>} {
  return
}

// -----

// expected-error@+1 {{expected tile.scratch with an integer or #tile.extent for each dimension of a memref, got [3] on 'memref<3x?xf32>'}}
func.func @kernel_c5(%q: memref<?xf32>, %s: memref<3x?xf32> {tile.scratch = [3]}) {
  return
}

// -----

// expected-error@+1 {{expected extents of its 1 arguments, got argument 2}}
func.func @kernel_c5(%s: memref<3x?xf32> {tile.scratch = [3, #tile.extent<argument = 2, dim = 0>]}) {
  return
}

// -----

// expected-error@+1 {{expected tile.scratch of the tile dialect on an argument, got 'tile.scrap'}}
func.func @kernel_c5(%s: memref<3x?xf32> {tile.scrap}) {
  return
}

// -----

func.func @global_c1(%q: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected one offset per dimension of 'memref<?x?xf32>', got 1}}
  %t = tile.load %q[%i] : memref<?x?xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @global_c2(%q: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected the element type of 'memref<?x?xf32>', got 'bf16'}}
  %t = tile.load %q[%i, %i] : memref<?x?xf32> -> tensor<64x64xbf16>
  return
}

// -----

func.func @global_c3(%q: memref<?xf32>, %i: index) {
  // expected-error@+1 {{expected a tile of rank 1 or 2 that 'memref<?xf32>' can hold, got rank 2}}
  %t = tile.load %q[%i] : memref<?xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @gather_c1(%q: memref<?xf32>, %i: tensor<32xindex>) {
  // expected-error@+1 {{expected index or 'tensor<64xindex>' as an index, got 'tensor<32xindex>'}}
  %t = tile.gather %q[%i] : memref<?xf32>, tensor<32xindex> -> tensor<64xf32>
  return
}

// -----

func.func @store_c2(%t: tensor<64x64xf32>, %s: !tile.shared<64x32xf32, swizzle = 128>) {
  // expected-error@+1 {{expected one stage of the shape and element type of 'tensor<64x64xf32>'}}
  tile.store %t to %s : tensor<64x64xf32>, !tile.shared<64x32xf32, swizzle = 128>
  return
}

// -----

func.func @alloc_shared_c1() {
  // expected-error@+1 {{expected an offset that is a multiple of 1024, got 512}}
  %s = tile.alloc_shared at 512 : !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

func.func @box_c2(%k: memref<?x?xbf16>, %s: !tile.shared<64x64xbf16, swizzle = 128, stages = 2>, %i: index) {
  // expected-error@+1 {{expected one stage (see tile.stage)}}
  tile.copy %k[%i, %i] to %s : memref<?x?xbf16>, !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
  return
}

// -----

func.func @mma_c2(%a: tensor<64x32xbf16>, %b: tensor<64x32xbf16>) {
  // expected-error@+1 {{expected M x K times K x N to give M x N, got 64x32 times 64x32 and 'tensor<64x32xf32>'}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, tensor<64x32xbf16> -> tensor<64x32xf32>
  return
}

// -----

func.func @mma_c3(%a: tensor<64x32xbf16>, %b: tensor<32x64xf16>) {
  // expected-error@+1 {{expected one float type of 8 or 16 bits for both operands, got 'bf16' and 'f16'}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c5(%a: tensor<64x32xbf16, #tile.acc<warpgroups = 1>>, %b: !tile.shared<32x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected lhs in layout #tile.operand_a<warpgroups = 1>, not transposed}}
  %c = tile.mma %a, %b : tensor<64x32xbf16, #tile.acc<warpgroups = 1>>, !tile.shared<32x64xbf16, swizzle = 128>
      -> tensor<64x64xf32, #tile.acc<warpgroups = 1>>
  return
}

// -----

func.func @mma_async_c2(%a: !tile.shared<64x24xbf16, swizzle = 128>, %b: !tile.shared<24x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected K in multiples of 16, got 24}}
  %c = tile.mma_async %a, %b : !tile.shared<64x24xbf16, swizzle = 128>, !tile.shared<24x64xbf16, swizzle = 128>
      -> !tile.in_flight<tensor<64x64xf32, #tile.acc<warpgroups = 1>>>
  return
}

// -----

// Reading an accumulator in flight does not even parse.
func.func @in_flight(%c: !tile.in_flight<tensor<64x64xf32, #tile.acc<warpgroups = 1>>>) {
  // expected-error@+1 {{must be floating-point-like}}
  %d = arith.addf %c, %c : !tile.in_flight<tensor<64x64xf32, #tile.acc<warpgroups = 1>>>
  return
}

// -----

func.func @reduce_c2(%a: tensor<64x64xf32, #tile.acc<warpgroups = 1>>) {
  // expected-error@+1 {{expected the row or quad of the source's accumulator layout}}
  %m = tile.reduce max %a : tensor<64x64xf32, #tile.acc<warpgroups = 1>> -> tensor<64xf32>
  return
}

// -----

func.func @broadcast_c2(%a: tensor<64xf32>) {
  // expected-error@+1 {{expected M to M x N, got 'tensor<64xf32>' to 'tensor<32x64xf32>'}}
  %m = tile.broadcast %a : tensor<64xf32> -> tensor<32x64xf32>
  return
}

// -----

func.func @coord_c1(%i: index) {
  // expected-error@+1 {{expected a tile of index with dimension 1, got 'tensor<64xindex>'}}
  %m = tile.coord 1 from %i : tensor<64xindex>
  return
}

// -----

func.func @named_barrier_c1(%i: index) {
  // expected-error@+1 {{expected 32 to 1024 threads in whole warps, got 100}}
  tile.named_barrier sync %i threads 100
  return
}

// -----

func.func @specialize_c2() {
  // expected-error@+1 {{expected at least one warpgroup and registers in multiples of 8 from 24 to 256, got 1 and 25 in role 'a'}}
  tile.specialize
  role a warpgroups 1 registers 25 {
  }
  role b warpgroups 1 registers 24 {
  }
  return
}

// -----

func.func @specialize_c3() {
  // expected-error@+1 {{expected at most 65536 registers in a block, got 92160}}
  tile.specialize
  role a warpgroups 1 registers 240 {
  }
  role b warpgroups 2 registers 240 {
  }
  return
}

// -----

func.func @specialize_c4() attributes {tile.kernel = #tile.kernel<warpgroups = 4, grid = []>} {
  // expected-error@+1 {{expected roles for the 4 warpgroups of the kernel, got 3}}
  tile.specialize
  role a warpgroups 1 registers 24 elected {
  }
  role b warpgroups 2 registers 240 {
  }
  return
}
