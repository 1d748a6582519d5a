// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @coord_c1(%i: index) {
  // expected-error@+1 {{expected a tile of index with dimension 1, got 'tensor<64xindex>'}}
  %m = tile.coord 1 from %i : tensor<64xindex>
  return
}

// -----

func.func @coord_c1_element(%i: index) {
  // expected-error@+1 {{expected a tile of index with dimension 0, got 'tensor<64xi32>'}}
  %m = tile.coord 0 from %i : tensor<64xi32>
  return
}
