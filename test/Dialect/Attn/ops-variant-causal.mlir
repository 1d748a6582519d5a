// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @top_left(
func.func @top_left(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: variants [#attn.causal<top_left>] :
  %o = attn.attention %q, %k, %v variants [#attn.causal<top_left>] : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @bottom_right(
func.func @bottom_right(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: variants [#attn.causal<bottom_right>] :
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}
