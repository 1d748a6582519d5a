// RUN: attn-opt %s --convert-attn-to-linalg=f64 --canonicalize | FileCheck %s

!t = tensor<?x?x?x16xbf16>

// s8: with f64 all arithmetic is in f64, the score region's too; the result is rounded once, at the end.
// CHECK-LABEL: func @f64(
func.func @f64(%q: !t, %k: !t, %cap: f32) -> !t {
  // CHECK: arith.extf %{{.*}} : bf16 to f64
  // CHECK: arith.mulf {{.*}} : f64
  // CHECK: %[[CAP:.*]] = arith.extf %{{.*}} : f32 to f64
  // CHECK: %[[X:.*]] = arith.divf %{{.*}}, %[[CAP]] : f64
  // CHECK: math.tanh %[[X]] : f64
  // CHECK: math.exp {{.*}} : f64
  // CHECK-NOT: : f32
  // CHECK: arith.truncf %{{.*}} : f64 to bf16
  %o = attn.attention %q, %k, %k
    score(%s, %b, %h, %m, %n) {
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
