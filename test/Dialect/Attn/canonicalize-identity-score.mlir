// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// A score region that yields its own score changes nothing.
// CHECK-LABEL: func @identity(
func.func @identity(%q: !t) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: score
  // CHECK: return
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      attn.yield %s : f32
    } : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @other(
func.func @other(%q: !t, %c: f32) -> !t {
  // CHECK: score(
  // CHECK-NEXT: attn.yield %{{.*}} : f32
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      attn.yield %c : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
