// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xbf16>

// The view of an argument stands in its place, so nobody else may read it.
func.func @read_again(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  // expected-error@+1 {{expected an argument that is read in no other way, and one as its key}}
  %rows = attn.pack_heads %q for %k by 8 : !t, !t -> !t
  %o = attn.attention %rows, %k, %v : !t, !t, !t -> !t
  %unpacked = attn.unpack_heads %o like %q by 8 : !t, !t -> !t
  %p = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %unpacked, %p : !t, !t
}

// -----

!t = tensor<?x?x?x64xbf16>

func.func @unpacked_otherwise(%q: !t, %k: !t, %v: !t) -> !t {
  %rows = attn.pack_heads %q for %k by 8 : !t, !t -> !t
  %o = attn.attention %rows, %k, %v : !t, !t, !t -> !t
  // expected-error@+1 {{expected the rows of a packed argument, unpacked once}}
  %unpacked = attn.unpack_heads %o like %q by 4 : !t, !t -> !t
  return %unpacked : !t
}

// -----

!t = tensor<?x?x?x64xbf16>

// Each row reads the sink of its own head, which is an element of an argument.
func.func @computed_sink(%q: !t, %k: !t, %v: !t, %s: tensor<?xf32>) -> !t {
  %twice = arith.addf %s, %s : tensor<?xf32>
  %rows = attn.pack_heads %q for %k by 8 : !t, !t -> !t
  // expected-error@+1 {{expected arguments as its source and key}}
  %sinks = attn.pack_sink %twice of %q for %k by 8 : tensor<?xf32>, !t, !t -> tensor<?x?xf32>
  %o = attn.attention %rows, %k, %v sink(%sinks : tensor<?x?xf32>) : !t, !t, !t -> !t
  %unpacked = attn.unpack_heads %o like %q by 8 : !t, !t -> !t
  return %unpacked : !t
}

// -----

!t = tensor<?x?x?x64xbf16>

// Heads of a group are those of an argument by those of another one.
func.func @computed_key(%q: !t, %k: !t, %v: !t, %s: tensor<?xf32>) -> !t {
  %rows = attn.pack_heads %q for %k by 8 : !t, !t -> !t
  %twice = arith.addf %k, %k : !t
  // expected-error@+1 {{expected arguments as its source and key}}
  %sinks = attn.pack_sink %s of %q for %twice by 8 : tensor<?xf32>, !t, !t -> tensor<?x?xf32>
  %o = attn.attention %rows, %k, %v sink(%sinks : tensor<?x?xf32>) : !t, !t, !t -> !t
  %unpacked = attn.unpack_heads %o like %q by 8 : !t, !t -> !t
  return %unpacked : !t
}
