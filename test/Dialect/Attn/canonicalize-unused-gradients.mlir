// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>
!vec = tensor<?xf32>

// Gradients that nothing reads are not computed. Regions and attributes stay; so do gradients of captured tensors.
// CHECK-LABEL: func @unused(
func.func @unused(%q: !t, %lse: !row, %sink: !vec, %bias: !vec) -> !t {
  // CHECK: attn.attention_grad {{.*}} sink({{.*}}) wrt({{.*}}) {note = 1 : i64}
  // CHECK: grad(
  // CHECK: -> d_key(tensor<?x?x?x64xbf16>) d_wrt(tensor<?xf32>)
  %r:5 = attn.attention_grad %q, %q, %q, %q, %lse, %q sink(%sink : !vec) wrt(%bias : !vec) {note = 1 : i64}
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %bias[%n] : !vec
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t) d_sink(!vec) d_wrt(!vec)
  return %r#1 : !t
}

// A mask of nothing and a position of zeros say nothing.
// CHECK-LABEL: func @defaults(
func.func @defaults(%q: !t, %lse: !row) -> !t {
  // CHECK: attn.attention_grad %arg0, %arg0, %arg0, %arg0, %arg1, %arg0 : {{.*}} -> d_query(
  %zero = arith.constant 0 : index
  %dq = attn.attention_grad %q, %q, %q, %q, %lse, %q at(%zero, %zero, %zero, %zero)
    mask(%b, %h, %m, %n) {
      %keep = arith.constant true
      attn.yield %keep : i1
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %dq : !t
}

// CHECK-LABEL: func @dead(
func.func @dead(%q: !t, %lse: !row) {
  // CHECK-NEXT: return
  %dq = attn.attention_grad %q, %q, %q, %q, %lse, %q : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return
}
