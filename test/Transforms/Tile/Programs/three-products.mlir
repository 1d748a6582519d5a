// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,330x64,330x64,200x64,200x64 seeds=200" | FileCheck %s
// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,330x64,330x64,200x64,200x64 seeds=20" -o %t

// Three products in a step, as for the gradient of queries: the keys are read by two of them, copied once, and given back after
// the second.
// CHECK:         role consumer
// CHECK:           scf.for
// CHECK:             tile.mma_async {{.*}} {transpose_rhs}
// CHECK:             tile.mma_async {{.*}} {transpose_rhs}
// CHECK:             tile.barrier_arrive
// CHECK:             tile.mma_async
// CHECK:             tile.barrier_arrive
// CHECK-NOT:         tile.barrier_arrive
// CHECK:             scf.yield
func.func @three_products(%q: memref<?x64xbf16, strided<[?,1]>>, %k: memref<?x64xbf16, strided<[?,1]>>, %v: memref<?x64xbf16, strided<[?,1]>>, %do: memref<?x64xbf16, strided<[?,1]>>, %dq: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %n = memref.dim %k, %c0 : memref<?x64xbf16, strided<[?,1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
    %tq = tile.load %q[%m, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %tk = tile.load %k[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %s = tile.mma %tq, %tk {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %p = math.exp2 %s : tensor<128x64xf32>
    %tdo = tile.load %do[%m, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
    %tv = tile.load %v[%i, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<64x64xbf16>
    %dp = tile.mma %tdo, %tv {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %ds = arith.mulf %p, %dp : tensor<128x64xf32>
    %dsb = arith.truncf %ds : tensor<128x64xf32> to tensor<128x64xbf16>
    %next = tile.mma %dsb, %tk, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  tile.store %r to %dq[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  return
}
