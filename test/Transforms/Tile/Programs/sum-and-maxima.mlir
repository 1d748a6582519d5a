// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=100x152,152x64,64x64,100x64,100 seeds=50" -o %t

// A sum and the largest values that it had, both carried, and a product after the loop: o = (sum of a b) w.
func.func @sum_and_maxima(%a: memref<?x?xbf16, strided<[?, 1]>>,
                          %b: memref<?x64xbf16, strided<[?, 1]>>,
                          %w: memref<?x64xbf16, strided<[?, 1]>>,
                          %o: memref<?x64xf32, strided<[?, 1]>>,
                          %x: memref<?xf32, strided<[1]>>)
    attributes {
      tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c64 : index
  %n = memref.dim %b, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e30 : f32
  %init = tile.broadcast %zero : f32 -> tensor<64x64xf32>
  %mx = tile.broadcast %low : f32 -> tensor<64xf32>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %init, %best = %mx) -> (tensor<64x64xf32>, tensor<64xf32>) {
    %ta = tile.load %a[%m, %i] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16>
    %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<32x64xbf16>
    %s = tile.mma %ta, %tb, %acc : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    %top = tile.reduce max %s, %best : tensor<64x64xf32>, tensor<64xf32> -> tensor<64xf32>
    scf.yield %s, %top : tensor<64x64xf32>, tensor<64xf32>
  }
  %p = arith.truncf %r#0 : tensor<64x64xf32> to tensor<64x64xbf16>
  %tw = tile.load %w[%c0, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
  %y = tile.mma %p, %tw : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %y to %o[%m, %c0] : tensor<64x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  tile.store %r#1 to %x[%m] : tensor<64xf32>, memref<?xf32, strided<[1]>>
  return
}
