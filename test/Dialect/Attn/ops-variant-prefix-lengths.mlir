// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// A length of -1 is read from a captured tensor, one per batch.
// CHECK-LABEL: func @prefix_lengths(
func.func @prefix_lengths(%q: !t, %k: !t, %v: !t, %lengths: tensor<?xindex>) -> !t {
  // CHECK: variants [#attn.prefix<-1, top_left>] captures(%{{.*}} : tensor<?xindex>) :
  %o = attn.attention %q, %k, %v variants [#attn.prefix<-1, top_left>] captures(%lengths : tensor<?xindex>) : !t, !t, !t -> !t
  return %o : !t
}
