// RUN: attn-opt %s --attn-append-gradients --split-input-file --verify-diagnostics

!t = tensor<?x?x?x16xbf16>
func.func @chain(%q: !t) -> !t {
  // expected-error@+1 {{expected results that only the function returns, got one with another use}}
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  %p = attn.attention %o, %q, %q : !t, !t, !t -> !t
  return %p : !t
}

// -----

!t = tensor<?x?x?x16xbf16>
func.func @unused(%q: !t) -> !t {
  // expected-error@+1 {{expected an output that the function returns, got one without uses}}
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  return %q : !t
}
