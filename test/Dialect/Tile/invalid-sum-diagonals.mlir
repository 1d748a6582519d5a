// RUN: attn-opt %s --split-input-file --verify-diagnostics

// @sum_diagonals_c1
func.func @sum_diagonals_c1(%t: tensor<24x32xf32>) {
  // expected-error@+1 {{expected a matrix of f32 with a multiple of 16 rows, got 'tensor<24x32xf32>'}}
  %s = tile.sum_diagonals %t : tensor<24x32xf32>
  return
}

// -----

func.func @sum_diagonals_c1_type(%t: tensor<64x32xbf16>) {
  // expected-error@+1 {{expected a matrix of f32 with a multiple of 16 rows, got 'tensor<64x32xbf16>'}}
  %s = tile.sum_diagonals %t : tensor<64x32xbf16>
  return
}

// -----

func.func @sum_diagonals_c1_vector(%t: tensor<64xf32>) {
  // expected-error@+1 {{expected a matrix of f32 with a multiple of 16 rows, got 'tensor<64xf32>'}}
  %s = tile.sum_diagonals %t : tensor<64xf32>
  return
}

// -----

// @sum_diagonals_c2
func.func @sum_diagonals_c2(%t: tensor<64x4xf32, #tile.quad<#tile.acc<units = 1>>>) {
  // expected-error@+1 {{expected layout `acc`, got 'tensor<64x4xf32, #tile.quad<#tile.acc<units = 1>>>'}}
  %s = tile.sum_diagonals %t : tensor<64x4xf32, #tile.quad<#tile.acc<units = 1>>>
  return
}
