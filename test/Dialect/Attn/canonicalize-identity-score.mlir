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

// What else the region computes goes with it.
// CHECK-LABEL: func @with_other_ops(
func.func @with_other_ops(%q: !t) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: score
  // CHECK: return
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %0 = arith.extf %s : f32 to f64
      %1 = math.exp %0 : f64
      %2 = math.absf %1 : f64
      attn.yield %s : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
