// RUN: not attn-opt %s --tile-to-async 2>&1 | FileCheck %s

// A vector with an element for each column: tiles have vectors of rows only.
// CHECK: error: 'tile.broadcast' op expected M to M x N, got 'tensor<64xf32>' to 'tensor<128x64xf32>'
func.func @columns(%q: memref<?x64xbf16, strided<[?,1]>>, %k: memref<?x64xbf16, strided<[?,1]>>, %lse: memref<?xf32, strided<[1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 1, dim = 0, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %n0 = arith.muli %bid, %c128 : index
  %m = memref.dim %q, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r = scf.for %i = %c0 to %m step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
    %tk = tile.load %k[%n0, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %tq = tile.load %q[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %st = tile.mma %tk, %tq {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %l = tile.load %lse[%i] : memref<?xf32, strided<[1]>> -> tensor<64xf32>
    %lc = tile.broadcast %l : tensor<64xf32> -> tensor<128x64xf32>
    %d = arith.subf %st, %lc : tensor<128x64xf32>
    %p = math.exp2 %d : tensor<128x64xf32>
    %pb = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
    %next = tile.mma %pb, %tq, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  tile.store %r to %o[%n0, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  return
}
