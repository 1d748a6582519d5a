// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,330x64,200x64 seeds=200" | FileCheck %s
// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,330x64,200x64 seeds=20" -o %t

// A guarded step without results: a block past the end copies nothing and computes nothing.
// CHECK:         role producer
// CHECK:           scf.if
// CHECK:             tile.copy_async
// CHECK:         role consumer
// CHECK:           scf.if
// CHECK:             tile.barrier_wait
// CHECK:             tile.mma_async
// CHECK:             tile.store
func.func @condition(%q: memref<?x64xbf16, strided<[?,1]>>, %k: memref<?x64xbf16, strided<[?,1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[3], [], []]>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %rows = memref.dim %q, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %in = arith.cmpi slt, %m, %rows : index
  scf.if %in {
    %tq = tile.load %q[%m, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %tk = tile.load %k[%c0, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %s = tile.mma %tq, %tk {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    tile.store %s to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  }
  return
}
