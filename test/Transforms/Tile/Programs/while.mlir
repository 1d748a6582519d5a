// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,330x64,200x64 seeds=200" | FileCheck %s
// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,330x64,200x64 seeds=20" -o %t

// A loop that is no scf.for.
// CHECK:         role producer
// CHECK:           scf.while
// CHECK:             tile.copy_async
// CHECK:         role consumer
// CHECK:           scf.while
// CHECK:             tile.mma_async
// CHECK:             tile.barrier_arrive
func.func @while(%q: memref<?x64xbf16, strided<[?,1]>>, %k: memref<?x64xbf16, strided<[?,1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[1], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %k, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r:2 = scf.while (%i = %c0, %acc = %init) : (index, tensor<128x64xf32>) -> (index, tensor<128x64xf32>) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %acc : index, tensor<128x64xf32>
  } do {
  ^bb0(%i: index, %acc: tensor<128x64xf32>):
    %tq = tile.load %q[%c0, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %tk = tile.load %k[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %s = tile.mma %tq, %tk, %acc {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    %j = arith.addi %i, %c64 : index
    scf.yield %j, %s : index, tensor<128x64xf32>
  }
  tile.store %r#1 to %o[%c0, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  return
}
