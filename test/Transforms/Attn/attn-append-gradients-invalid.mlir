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

// -----

!t = tensor<?x?x?x16xbf16>
func.func @wide_capture(%q: !t, %x: tensor<4x2147483648xf32>) -> !t {
  // expected-error@+1 {{expected captured tensors with extents of at most 1073741824 where their gradients are wanted, got 'tensor<4x2147483648xf32>'}}
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h, %n] : tensor<4x2147483648xf32>
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xbf16>
// Sinks of rows are those of packed heads.
func.func @sinks_of_rows(%q: !t, %x: tensor<?x?xf32>) -> !t {
  // expected-error@+1 {{expected a sink of (H) where its gradient is wanted, got 'tensor<?x?xf32>'}}
  %o = attn.attention %q, %q, %q sink(%x : tensor<?x?xf32>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xbf16>
func.func @sequences(%rows: tensor<?x?x16xbf16>, %offsets: tensor<?xi32>, %m: index) -> !t {
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x16xbf16>, tensor<?xi32> -> !t
  // expected-error@+1 {{expected no rows of sequences (attn.ragged) where gradients are appended: write attn.attention_grad}}
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  return %o : !t
}
