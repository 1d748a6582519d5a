// RUN: attn-opt %s --tile-to-async --tile-simulate="shapes=200x64,152x64,152x64,64x64,200x64 seeds=50" -o %t

// Three products in a chain: o = sum over i of relu(relu(a b[i]^T) c[i]) d.
func.func @chain_of_three(%a: memref<?x64xbf16, strided<[?, 1]>>,
                          %b: memref<?x64xbf16, strided<[?, 1]>>,
                          %c: memref<?x64xbf16, strided<[?, 1]>>,
                          %d: memref<?x64xbf16, strided<[?, 1]>>,
                          %o: memref<?x64xf32, strided<[?, 1]>>)
    attributes {
      tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 128>], [], []]>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bid = gpu.block_id x
  %m = arith.muli %bid, %c128 : index
  %n = memref.dim %b, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  %init = tile.broadcast %zero : f32 -> tensor<128x64xf32>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %init) -> tensor<128x64xf32> {
    %ta = tile.load %a[%m, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<128x64xbf16>
    %tb = tile.load %b[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
    %s = tile.mma %ta, %tb {transpose_rhs} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %s1 = arith.maximumf %s, %init : tensor<128x64xf32>
    %p = arith.truncf %s1 : tensor<128x64xf32> to tensor<128x64xbf16>
    %tc = tile.load %c[%i, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
    %t = tile.mma %p, %tc : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %t1 = arith.maximumf %t, %init : tensor<128x64xf32>
    %p2 = arith.truncf %t1 : tensor<128x64xf32> to tensor<128x64xbf16>
    %td = tile.load %d[%c0, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
    %u = tile.mma %p2, %td, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32> -> tensor<128x64xf32>
    scf.yield %u : tensor<128x64xf32>
  }
  tile.store %r to %o[%m, %c0] : tensor<128x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  return
}
