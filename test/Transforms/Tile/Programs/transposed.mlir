// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=128x64,128x64,128x64 seeds=200" | FileCheck %s
// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=128x64,128x64,128x64 seeds=20" -o %t

// A product whose lhs is the transpose of what threads have computed: they hand it over through shared memory.
// CHECK:         role consumer
// CHECK:           %[[S:.*]] = tile.mma_wait
// CHECK:           tile.store %{{.*}} to %[[P:.*]] : tensor<128x128xbf16
// CHECK-NEXT:      tile.fence async_shared
// CHECK-NEXT:      tile.named_barrier sync %{{.*}} threads 256
// CHECK-NEXT:      tile.mma_async %[[P]], %{{.*}} {transpose_lhs}
func.func @transposed(%q: memref<?x64xbf16, strided<[?,1]>>, %k: memref<?x64xbf16, strided<[?,1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[1], [], []]>} {
  %c0 = arith.constant 0 : index
  %tk = tile.load %k[%c0, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
  %tq = tile.load %q[%c0, %c0] : memref<?x64xbf16, strided<[?,1]>> -> tensor<128x64xbf16>
  %st = tile.mma %tk, %tq {transpose_rhs} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
  %p = arith.truncf %st : tensor<128x128xf32> to tensor<128x128xbf16>
  %dq = tile.mma %p, %tk {transpose_lhs} : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
  tile.store %dq to %o[%c0, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  return
}
