// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// The score region has the score and four positions; their types are not spelled.
// CHECK-LABEL: func @score(
func.func @score(%q: !t, %k: !t, %v: !t, %factor: f32) -> !t {
  // CHECK: attn.attention
  // CHECK-NEXT: score(%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[S]], %{{.*}} : f32
  // CHECK-NEXT: attn.yield %[[SUM]] : f32
  // CHECK-NOT: mask
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %sum = arith.addf %s, %factor : f32
      attn.yield %sum : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
