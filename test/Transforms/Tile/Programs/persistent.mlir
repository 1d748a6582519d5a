// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=600x64,330x64,600x64 seeds=200" | FileCheck %s
// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=600x64,330x64,600x64 seeds=20" -o %t

// Blocks that go on to other rows: a loop around the loop over keys. The queries change with the outer one, so that they have a
// ring too.
// CHECK:         role producer
// CHECK:           scf.for
// CHECK:             tile.copy_async
// CHECK:             scf.for
// CHECK:               tile.copy_async
// CHECK:         role consumer
// CHECK:           scf.for
// CHECK:             tile.barrier_wait
// CHECK:             scf.for
// CHECK:               tile.barrier_wait
// CHECK:               tile.mma_async
// CHECK:               tile.barrier_arrive
// CHECK:             tile.barrier_arrive
// CHECK:             tile.store
func.func @persistent(%q: memref<?x64xbf16, strided<[?,1]>>, %k: memref<?x64xbf16, strided<[?,1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[2], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bid = gpu.block_id x
  %first = arith.muli %bid, %c128 : index
  %rows = memref.dim %q, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %n = memref.dim %k, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %zero = arith.constant 0.0 : f32
  scf.for %m = %first to %rows step %c256 {
    %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
      %tq = tile.load %q[%m, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
      %tk = tile.load %k[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
      %s = tile.mma %tq, %tk, %acc {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
      scf.yield %s : tensor<128x64xf32>
    }
    tile.store %r to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  }
  return
}
