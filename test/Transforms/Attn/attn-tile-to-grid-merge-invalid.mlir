// RUN: attn-opt %s --attn-set-schedule=target=cuda --attn-tile-to-grid --split-input-file --verify-diagnostics

// A merge that somebody wrote has at most as many dimensions as a grid.
func.func @dimensions(%p: tensor<3x2x2x2x2x64xf32>, %l: tensor<3x2x2x2x2xf32>, %o: tensor<2x2x2x2x64xf32>) -> tensor<2x2x2x2x64xf32> {
  // expected-error@below {{expected results (B, H, M, Dv), or with fewer dimensions in front, got 'tensor<2x2x2x2x64xf32>'}}
  %r = attn.merge %p, %l outs(%o) : tensor<3x2x2x2x2x64xf32>, tensor<3x2x2x2x2xf32>, tensor<2x2x2x2x64xf32> -> tensor<2x2x2x2x64xf32>
  return %r : tensor<2x2x2x2x64xf32>
}

// -----

func.func @columns(%p: tensor<3x2x?xf32>, %l: tensor<3x2xf32>, %o: tensor<2x?xf32>) -> tensor<2x?xf32> {
  // expected-error@below {{expected a static Dv, a multiple of 8, got 'tensor<2x?xf32>'}}
  %r = attn.merge %p, %l outs(%o) : tensor<3x2x?xf32>, tensor<3x2xf32>, tensor<2x?xf32> -> tensor<2x?xf32>
  return %r : tensor<2x?xf32>
}

// -----

func.func @odd_columns(%p: tensor<3x2x33xf32>, %l: tensor<3x2xf32>, %o: tensor<2x33xf32>) -> tensor<2x33xf32> {
  // expected-error@below {{expected a static Dv, a multiple of 8, got 'tensor<2x33xf32>'}}
  %r = attn.merge %p, %l outs(%o) : tensor<3x2x33xf32>, tensor<3x2xf32>, tensor<2x33xf32> -> tensor<2x33xf32>
  return %r : tensor<2x33xf32>
}

// -----

func.func @scalar(%p: tensor<3x64xf32>, %l: tensor<3xf32>, %o: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@below {{expected results (B, H, M, Dv), or with fewer dimensions in front, got 'tensor<64xf32>'}}
  %r = attn.merge %p, %l outs(%o) : tensor<3x64xf32>, tensor<3xf32>, tensor<64xf32> -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

func.func @nothing(%p: tensor<3x0x64xf32>, %l: tensor<3x0xf32>, %o: tensor<0x64xf32>) -> tensor<0x64xf32> {
  // expected-error@below {{expected static extents above 0, got 'tensor<3x0x64xf32>' (a dynamic extent may be 0)}}
  %r = attn.merge %p, %l outs(%o) : tensor<3x0x64xf32>, tensor<3x0xf32>, tensor<0x64xf32> -> tensor<0x64xf32>
  return %r : tensor<0x64xf32>
}
