// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @chunked(
func.func @chunked(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.chunked<256, top_left>] :
  %o = attn.attention %q, %k, %v variants [#attn.chunked<256, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
