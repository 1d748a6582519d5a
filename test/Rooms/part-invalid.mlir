// RUN: attn-opt %s --tile-assign-layouts --verify-diagnostics

// A pass in the middle of a room takes what may stand in it, whether or not it is complete.
// expected-error@+2 {{tile-assign-layouts: expected a part of room 5 'placed', got room 1 'problem'}}
// expected-note@+1 {{'func.func' in room 5 'placed': expected a kernel with tile.kernel, got a function without}}
func.func @attention(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
