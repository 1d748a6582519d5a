// RUN: not attn-opt %s --tile-to-async 2>&1 | FileCheck %s

// Operands of 8 bits must have the dimension that is summed over contiguous; values have not.
// CHECK:     error: 'tile.mma' op expected 8-bit operands with K contiguous (lhs not transposed, rhs transposed), got rhs not transposed (elements of 16 bits may lie either way)
// CHECK-NOT: error
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
