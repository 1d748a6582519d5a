// RUN: attn-opt %s --tile-to-async | FileCheck %s

// Products of 8 bits take operands with the dimension that is summed over contiguous, and values have not: a warpgroup of its own
// transposes them, with keys in quads, as weights lie in registers.
// CHECK:       warpgroups = 4
// CHECK:       role producer warpgroups 1
// CHECK:       tile.copy_async %{{.*}} to %{{.*}} signal
// CHECK:       role consumer warpgroups 2
// CHECK:       tile.convert_layout {{.*}} #tile.operand_a<units = 2, quads = true>
// CHECK:       tile.mma_async {{.*}} {transpose_rhs} : {{.*}} !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
// CHECK:       role transposer warpgroups 1
// CHECK-NEXT:  tile.barrier_wait
// CHECK-NEXT:  tile.transpose %{{.*}} to %{{.*}} : !tile.shared<128x64xf8E4M3FN, swizzle = 64>, !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
// CHECK-NEXT:  tile.fence async_shared
// CHECK-NEXT:  tile.barrier_arrive
func.func @values_of_8_bits(%q: memref<?x64xf8E4M3FN, strided<[?,1]>>, %k: memref<?x64xf8E4M3FN, strided<[?,1]>>, %v: memref<?x64xf8E4M3FN, strided<[?,1]>>, %o: memref<?x64xf32, strided<[?,1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[1], [], []]>} {
  %c0 = arith.constant 0 : index
  %tk = tile.load %k[%c0, %c0] : memref<?x64xf8E4M3FN, strided<[?,1]>> -> tensor<128x64xf8E4M3FN>
  %tv = tile.load %v[%c0, %c0] : memref<?x64xf8E4M3FN, strided<[?,1]>> -> tensor<128x64xf8E4M3FN>
  %tq = tile.load %q[%c0, %c0] : memref<?x64xf8E4M3FN, strided<[?,1]>> -> tensor<128x64xf8E4M3FN>
  %s = tile.mma %tq, %tk {transpose_rhs} : tensor<128x64xf8E4M3FN>, tensor<128x64xf8E4M3FN> -> tensor<128x128xf32>
  %p = arith.truncf %s : tensor<128x128xf32> to tensor<128x128xf8E4M3FN>
  %r = tile.mma %p, %tv : tensor<128x128xf8E4M3FN>, tensor<128x64xf8E4M3FN> -> tensor<128x64xf32>
  tile.store %r to %o[%c0, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?,1]>>
  return
}
