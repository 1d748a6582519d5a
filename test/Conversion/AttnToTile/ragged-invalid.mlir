// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xbf16>
!r = tensor<?x?x64xbf16>

// The view of rows stands in their place, so nobody else may read them.
func.func @read_again(%q: !t, %r: !r, %a: tensor<?xi32>, %b: tensor<?xi32>, %most: tensor<?xi8>) -> !t {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %most, %c0 : tensor<?xi8>
  // expected-error@+1 {{expected an argument that is read in no other way as its rows}}
  %k = attn.ragged %r[%a] up_to %m : !r, tensor<?xi32> -> !t
  %v = attn.ragged %r[%b] up_to %m : !r, tensor<?xi32> -> !t
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xbf16>
!r = tensor<?x?x64xbf16>

// A launch knows sizes alone.
func.func @number(%q: !t, %r: !r, %s: !r, %a: tensor<?xi32>, %m: index) -> !t {
  // expected-error@+1 {{expected offsets that are an argument, and the size of one as M}}
  %k = attn.ragged %r[%a] up_to %m : !r, tensor<?xi32> -> !t
  %v = attn.ragged %s[%a] up_to %m : !r, tensor<?xi32> -> !t
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xbf16>
!r = tensor<?x?x64xbf16>

// Arguments are never written.
func.func @into_argument(%r: !r, %k: !t, %v: !t, %a: tensor<?xi32>, %most: tensor<?xi8>, %out: !r) -> !r {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %most, %c0 : tensor<?xi8>
  %q = attn.ragged %r[%a] up_to %m : !r, tensor<?xi32> -> !t
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  // expected-error@+1 {{expected a result that nothing else reads, into a tensor.empty or, of a matrix, one that is filled with zeros}}
  %p = attn.place %o[%a] into %out : !t, tensor<?xi32> -> !r
  return %p : !r
}

// -----

!t = tensor<?x?x?x64xbf16>
!r = tensor<?x?x64xbf16>

// A dimension that the size has not is no size.
func.func @no_dimension(%r: !r, %k: !t, %v: !t, %a: tensor<?xi32>, %most: tensor<?xi8>) -> !t {
  %c9 = arith.constant 9 : index
  // expected-error@+1 {{expected a dimension below 1, got 9 of 'tensor<?xi8>'}}
  %m = tensor.dim %most, %c9 : tensor<?xi8>
  %q = attn.ragged %r[%a] up_to %m : !r, tensor<?xi32> -> !t
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}
