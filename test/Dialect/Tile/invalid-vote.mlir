// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @vote_c1(%t: tensor<64x8xi32>) {
  // expected-error@+1 {{expected a tile of i1, got 'tensor<64x8xi32>'}}
  %some = tile.vote any %t : tensor<64x8xi32>
  return
}

// -----

func.func @vote_c2(%t: tensor<128x8xi1, #tile.acc<units = 2>>) {
  // expected-error@+1 {{expected a tile of a block of one warpgroup, got 'tensor<128x8xi1, #tile.acc<units = 2>>'}}
  %some = tile.vote any %t : tensor<128x8xi1, #tile.acc<units = 2>>
  return
}

// -----

func.func @vote_c2_role(%t: tensor<64x8xi1>) {
  tile.specialize
  role a warpgroups 1 registers 24 {
    // expected-error@+1 {{expected a tile of a block of one warpgroup, got 'tensor<64x8xi1>'}}
    %some = tile.vote all %t : tensor<64x8xi1>
  }
  role b warpgroups 1 registers 24 {
  }
  return
}
