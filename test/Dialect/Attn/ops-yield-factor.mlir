// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>

// A score region may say what multiplies the weight in front of the value.
// CHECK-LABEL: func @factor(
func.func @factor(%q: !t, %k: !t, %v: !t, %f: f32) -> !t {
  // CHECK: attn.yield %[[S:.*]], %[[F:.*]] : f32, f32
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      attn.yield %s, %f : f32, f32
    } : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @gradient(
func.func @gradient(%q: !t, %l: !row, %f: f32) -> !t {
  // CHECK: score(
  // CHECK-NEXT: attn.yield {note = "both"} %{{.*}}, %{{.*}} : f32, f32
  // CHECK: grad(
  // CHECK-NEXT: attn.yield %{{.*}} : f32
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      attn.yield {note = "both"} %s, %f : f32, f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}
