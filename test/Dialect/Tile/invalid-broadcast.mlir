// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @broadcast_c1(%a: f32) {
  // expected-error@+1 {{expected elements of type 'bf16', got 'f32'}}
  %m = tile.broadcast %a : f32 -> tensor<64x64xbf16>
  return
}

// -----

func.func @broadcast_c2(%a: tensor<64xf32>) {
  // expected-error@+1 {{expected M to M x N, got 'tensor<64xf32>' to 'tensor<32x64xf32>'}}
  %m = tile.broadcast %a : tensor<64xf32> -> tensor<32x64xf32>
  return
}

// -----

func.func @broadcast_c3(%a: tensor<64xf32, #tile.row<#tile.acc<units = 1>>>) {
  // expected-error@+1 {{expected the row of the result's layout}}
  %m = tile.broadcast %a : tensor<64xf32, #tile.row<#tile.acc<units = 1>>> -> tensor<64x64xf32>
  return
}
