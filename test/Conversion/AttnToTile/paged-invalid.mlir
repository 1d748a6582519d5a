// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xbf16>
!pool = tensor<?x64x?x64xbf16>

// The view of a pool stands in its place, so nobody else may read it.
func.func @read_again(%q: !t, %p: !pool, %v: !t, %a: tensor<?x?xi32>, %b: tensor<?x?xi32>) -> !t {
  // expected-error@+1 {{expected an argument that is read in no other way as its pool, and one as its table}}
  %k = attn.paged %p[%a] : !pool, tensor<?x?xi32> -> !t
  %w = attn.paged %p[%b] : !pool, tensor<?x?xi32> -> !t
  %o = attn.attention %q, %k, %w : !t, !t, !t -> !t
  return %o : !t
}
