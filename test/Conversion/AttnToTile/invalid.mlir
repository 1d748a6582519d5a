// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile -split-input-file -verify-diagnostics

// expected-error@below {{expected an scf.forall mapped to blocks, got none}}
func.func @no_grid(%q: tensor<4xf32>) -> tensor<4xf32> {
  return %q : tensor<4xf32>
}

// -----

// expected-error@below {{expected every result to come from a grid, each from its own}}
func.func @twice(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>) -> (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o, %o : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>
}

// -----

// Memory that nothing was written to is no argument of a kernel.
func.func @empty_keys(%q: tensor<?x?x?x64xbf16>, %n: index) -> tensor<?x?x?x64xbf16> {
  %k = tensor.empty(%n, %n, %n) : tensor<?x?x?x64xbf16>
  // expected-error@below {{expected operands with elements in a block, got the result of 'tensor.empty' of type 'tensor<?x?x?x64xbf16>'}}
  %o = attn.attention %q, %k, %q : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
