// RUN: attn-opt %s --tile-simulate='shapes=64x64 max-work=100000' --split-input-file --verify-diagnostics

// What does not end is told by its work: a loop by its instructions and the elements of its tiles.
// expected-error@+1 {{expected a block that ends within 100000 units of work (64 an instruction, 1 an element)}}
func.func @loop(%x: memref<?x64xf32, strided<[?, 1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %t = tile.load %x[%c0, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<64x64xf32>
  %r = scf.while (%a = %t) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    scf.condition(%true) %a : tensor<64x64xf32>
  } do {
  ^bb0(%a: tensor<64x64xf32>):
    %b = arith.addf %a, %t : tensor<64x64xf32>
    scf.yield %b : tensor<64x64xf32>
  }
  return
}

// -----

// Blocks that do nothing end, but not all of so many.
// expected-error@+1 {{expected a block that ends within 32 units of work (64 an instruction, 1 an element)}}
func.func @grid(%x: memref<?x64xf32, strided<[?, 1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[2147483647], [65535], []]>} {
  return
}

// -----

// expected-error@+1 {{expected a grid of at most 2147483647 blocks in dimension 0}}
func.func @product(%x: memref<?x64xf32, strided<[?, 1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[2147483647, 2147483647, 2147483647]]>} {
  return
}
