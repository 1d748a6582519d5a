// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize | FileCheck %s

!t = tensor<?x?x?x16xf16>
!wide = tensor<?x?x?x16xf64>
!row = tensor<?x?x?xf64>

// What the forward pass gave in f64 is rounded to the type of the arithmetic.
// CHECK-LABEL: func @rows(
func.func @rows(%o: !wide, %l: !row) -> (!row, !row) {
  // CHECK: arith.truncf %{{.*}} : f64 to f32
  // CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
  %n, %d = attn.row_delta %o, %o, %l d_lse(%l : !row) : !wide, !wide, !row -> !row, !row
  return %n, %d : !row, !row
}

// CHECK-LABEL: func @gradients(
func.func @gradients(%q: !t, %o: !wide, %l: !row, %sink: tensor<?xf32>) -> (!t, !wide, tensor<?xf64>) {
  // CHECK: arith.truncf %{{.*}} : f64 to f32
  // CHECK: math.exp %{{.*}} : f32
  // CHECK-NOT: attn.
  %r:3 = attn.attention_grad %q, %q, %q, %o, %l, %o d_lse(%l : !row) sink(%sink : tensor<?xf32>)
      : !t, !t, !t, !wide, !row, !wide -> d_query(!t) d_value(!wide) d_sink(tensor<?xf64>)
  return %r#0, %r#1, %r#2 : !t, !wide, tensor<?xf64>
}

// CHECK-LABEL: func @passes(
func.func @passes(%q: !t, %o: !wide, %l: !row) -> (!wide, !t) {
  // CHECK: math.exp2 %{{.*}} : f32
  // CHECK: math.exp2 %{{.*}} : f32
  // CHECK-NOT: attn.
  %dq = attn.attention_grad_query %q, %q, %q, %o, %l, %l : !t, !t, !t, !wide, !row, !row -> d_query(!wide)
  %dv = attn.attention_grad_key_value %q, %q, %q, %o, %l, %l : !t, !t, !t, !wide, !row, !row -> d_value(!t)
  return %dq, %dv : !wide, !t
}
