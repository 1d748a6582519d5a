// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,64x64,200x64 seeds=50" -o %t

// A row sum in front of a product, without a loop: o = (x / sqrt(sum of squares of the row)) w.
func.func @norm_then_product(%x: memref<?x64xbf16, strided<[?, 1]>>,
                             %w: memref<?x64xbf16, strided<[?, 1]>>,
                             %o: memref<?x64xf32, strided<[?, 1]>>)
    attributes {
      tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %tx = tile.load %x[%m, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<128x64xbf16>
  %te = arith.extf %tx : tensor<128x64xbf16> to tensor<128x64xf32>
  %sq = arith.mulf %te, %te : tensor<128x64xf32>
  %ss = tile.reduce add %sq : tensor<128x64xf32> -> tensor<128xf32>
  %r = math.rsqrt %ss : tensor<128xf32>
  %rb = tile.broadcast %r : tensor<128xf32> -> tensor<128x64xf32>
  %n = arith.mulf %te, %rb : tensor<128x64xf32>
  %nb = arith.truncf %n : tensor<128x64xf32> to tensor<128x64xbf16>
  %tw = tile.load %w[%c0, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
  %y = tile.mma %nb, %tw : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
  tile.store %y to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  return
}
