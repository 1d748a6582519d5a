// RUN: attn-opt %s --tile-to-async | FileCheck %s

// Products that nobody stores take their copies with them: nobody would give the stages back.
// CHECK-LABEL: func.func @unused
// CHECK-NOT:     tile.copy
// CHECK-LABEL: func.func @in_loop
func.func @unused(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
  %b = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
  %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
  scf.for %i = %c96 to %n step %c96 {
    %d = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
    %t = tile.mma %a, %d {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
  }
  return
}

// A loop that carries no tile is shared out among the roles as any other.
// CHECK:       role producer
// CHECK:         scf.for
// CHECK:           tile.copy_async
// CHECK:       role consumer
// CHECK:         scf.for
// CHECK:           tile.mma_async
// CHECK:           tile.barrier_arrive
// CHECK:           tile.store
func.func @in_loop(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %o: memref<?x?xf32>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
  scf.for %i = %c0 to %n step %c96 {
    %d = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
    %t = tile.mma %a, %d {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
    tile.store %t to %o[%c0, %i] : tensor<128x96xf32>, memref<?x?xf32>
  }
  return
}
