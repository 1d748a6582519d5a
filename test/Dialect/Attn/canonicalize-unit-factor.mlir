// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>

// A factor of 1 is none, and then the region changes nothing.
// CHECK-LABEL: func @unit(
func.func @unit(%q: !t) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: score
  // CHECK: return
  %one = arith.constant 1.0 : f32
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      attn.yield %s, %one : f32, f32
    } : !t, !t, !t -> !t
  return %o : !t
}

// Another factor keeps a region that yields its own score.
// CHECK-LABEL: func @other(
func.func @other(%q: !t, %f: f32) -> !t {
  // CHECK: score(%[[S:[a-z0-9]+]],
  // CHECK-NEXT: attn.yield %[[S]], %{{.*}} : f32, f32
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      attn.yield %s, %f : f32, f32
    } : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @gradient(
func.func @gradient(%q: !t, %l: !row) -> !t {
  // CHECK: score(
  // CHECK-NEXT: %[[ABS:.*]] = math.absf
  // CHECK-NEXT: attn.yield %[[ABS]] : f32
  %one = arith.constant 1.0 : f32
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.absf %s : f32
      attn.yield %t, %one : f32, f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}
