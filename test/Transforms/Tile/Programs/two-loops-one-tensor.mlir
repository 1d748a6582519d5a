// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,152x64,200x64 seeds=50" -o %t

// One place that an outer loop fills and two inner loops read, the second of them backwards.
func.func @two_loops_one_tensor(%a: memref<?x64xbf16, strided<[?, 1]>>,
                                %b: memref<?x64xbf16, strided<[?, 1]>>,
                                %o: memref<?x64xf32, strided<[?, 1]>>)
    attributes {
      tile.kernel = #tile.kernel<warpgroups = 2, grid = [[1], [], []], schedule = <stages = 3>>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %b, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %rows = memref.dim %a, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  scf.for %m = %c0 to %rows step %c128 {
    %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
    %ta = tile.load %a[%m, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<128x64xbf16>
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
      %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
      %s = tile.mma %ta, %tb, %acc {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
      scf.yield %s : tensor<128x64xf32>
    }
    %r2 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %r) -> tensor<128x64xf32> {
      %e = arith.subi %n, %c64 : index
      %i = arith.subi %e, %j : index
      %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
      %p = arith.truncf %acc : tensor<128x64xf32> to tensor<128x64xbf16>
      %s = tile.mma %p, %tb : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
      scf.yield %s : tensor<128x64xf32>
    }
    tile.store %r2 to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  }
  return
}
