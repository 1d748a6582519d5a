// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile -split-input-file -verify-diagnostics

// What comes back may be f32; a product has one type.
!x = tensor<?x?x?x64xbf16>
!w = tensor<?x?x?x64xf32>
!r = tensor<?x?x?xf32>
func.func @mixed(%q: !x, %o: !w, %lse: !r) -> !x {
  // expected-error@below {{expected query, key, value and d_output of one element type, got 'tensor<?x64xbf16>' and 'tensor<?x64xf32>'}}
  %g = attn.attention_grad %q, %q, %q, %o, %lse, %o : !x, !x, !x, !w, !r, !w -> d_query(!x)
  return %g : !x
}
