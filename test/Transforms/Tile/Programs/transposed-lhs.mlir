// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=152x200,152x64,200x64 seeds=50" -o %t

// A left operand of memory, transposed: o[m, :] = sum over i of a[i, m] b[i, :].
func.func @transposed_lhs(%a: memref<?x?xbf16, strided<[?, 1]>>,
                          %b: memref<?x64xbf16, strided<[?, 1]>>,
                          %o: memref<?x64xf32, strided<[?, 1]>>)
    attributes {
      tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 1, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %n = memref.dim %b, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
    %ta = tile.load %a[%i, %m] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x128xbf16>
    %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
    %s = tile.mma %ta, %tb, %acc {transpose_lhs} : tensor<64x128xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %s : tensor<128x64xf32>
  }
  tile.store %r to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  return
}
