// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @reduce_c1(%a: tensor<64x32xf32>) {
  // expected-error@+1 {{expected M x N to M (or M x 4) of one element type, got 'tensor<64x32xf32>' to 'tensor<32xf32>'}}
  %m = tile.reduce max %a : tensor<64x32xf32> -> tensor<32xf32>
  return
}

// -----

func.func @reduce_c2(%a: tensor<64x64xf32, #tile.acc<units = 1>>) {
  // expected-error@+1 {{expected the row or quad of the source's accumulator layout}}
  %m = tile.reduce max %a : tensor<64x64xf32, #tile.acc<units = 1>> -> tensor<64xf32>
  return
}

// -----

func.func @reduce_c2_warpgroups(%a: tensor<128x4xf32, #tile.quad<#tile.acc<units = 1>>>) {
  // expected-error@+1 {{expected the row or quad of the source's accumulator layout}}
  %m = tile.reduce add %a : tensor<128x4xf32, #tile.quad<#tile.acc<units = 1>>>
      -> tensor<128xf32, #tile.row<#tile.acc<units = 2>>>
  return
}

// -----

func.func @reduce_c3(%a: tensor<64x32xf32>, %init: tensor<64xf32>) {
  // expected-error@+1 {{expected an initial value of type 'tensor<64x4xf32>', got 'tensor<64xf32>'}}
  %m = tile.reduce add %a, %init : tensor<64x32xf32>, tensor<64xf32> -> tensor<64x4xf32>
  return
}
