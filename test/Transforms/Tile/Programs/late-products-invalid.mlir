// RUN: not attn-opt %s --tile-pipeline-steps --tile-to-async 2>&1 | FileCheck %s

// Products one turn late: their operands are tiles in registers that the loop carries. To run ahead is the business of rings
// in shared memory, and a right operand lies there.
// CHECK: error: 'tile.broadcast' op has no layout: expected rows in multiples of 128 (64 for each of 2 units), got 64
func.func @sums(%a: memref<?x?xbf16, strided<[?,1]>>, %b: memref<?x64xbf16, strided<[?,1]>>, %c: memref<?x?xbf16, strided<[?,1]>>, %d: memref<?x64xbf16, strided<[?,1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %n = memref.dim %b, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
    %ta = tile.load %a[%m, %i] : memref<?x?xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %s = tile.mma %ta, %tb, %acc {tile.delay = 1} : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    %tc = tile.load %c[%m, %i] : memref<?x?xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %td = tile.load %d[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %t = tile.mma %tc, %td, %s {tile.delay = 1} : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %t : tensor<128x64xf32>
  }
  tile.store %r to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  return
}
