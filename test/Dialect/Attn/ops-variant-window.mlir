// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// -1 is no bound on that side.
// CHECK-LABEL: func @window(
func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: variants [#attn.window<127, 0, bottom_right>, #attn.window<-1, 3, top_left>] :
  %o = attn.attention %q, %k, %v variants [#attn.window<127, 0, bottom_right>, #attn.window<-1, 3, top_left>] : !t, !t, !t -> !t
  return %o : !t
}
