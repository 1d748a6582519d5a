// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=152x280,280x64,152x64 seeds=50" -o %t

// A left operand that is loaded and computed on, in every second turn: o = sum over i of (a[:, i] * a[:, i]) b[i, :].
func.func @guarded_lhs(%a: memref<?x?xbf16, strided<[?, 1]>>,
                       %b: memref<?x64xbf16, strided<[?, 1]>>,
                       %o: memref<?x64xf32, strided<[?, 1]>>)
    attributes {
      tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %n = memref.dim %b, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
    %odd = arith.remui %i, %c128 : index
    %go = arith.cmpi eq, %odd, %c0 : index
    %next = scf.if %go -> tensor<128x64xf32> {
      %ta = tile.load %a[%m, %i] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<128x64xbf16>
      %te = arith.extf %ta : tensor<128x64xbf16> to tensor<128x64xf32>
      %tq = arith.mulf %te, %te : tensor<128x64xf32>
      %sq = arith.truncf %tq : tensor<128x64xf32> to tensor<128x64xbf16>
      %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
      %s = tile.mma %sq, %tb, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
      scf.yield %s : tensor<128x64xf32>
    } else {
      scf.yield %acc : tensor<128x64xf32>
    }
    scf.yield %next : tensor<128x64xf32>
  }
  tile.store %r to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  return
}
