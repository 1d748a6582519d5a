// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!q = tensor<?x?x?x64xbf16>
!v = tensor<?x?x?x32xbf16>
!row = tensor<?x?x?xf32>
!vec = tensor<?xf32>

// CHECK-LABEL: func @row_delta(
func.func @row_delta(%o: !v, %do: !v, %lse: !row, %dl: !row) -> (!row, !row) {
  // CHECK: attn.row_delta %{{.*}}, %{{.*}}, %{{.*}} d_lse(%{{.*}} : tensor<?x?x?xf32>) : {{.*}} -> tensor<?x?x?xf32>, tensor<?x?x?xf32>
  %n, %d = attn.row_delta %o, %do, %lse d_lse(%dl : !row) : !v, !v, !row -> !row, !row
  return %n, %d : !row, !row
}

// CHECK-LABEL: func @delta(
func.func @delta(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row, %c: f32, %i: index, %sink: !vec) -> (!row, !row) {
  // CHECK: attn.attention_grad_delta %{{.*}} : {{.*}} -> tensor<?x?x?xf32>
  %plain = attn.attention_grad_delta %q, %k, %v, %do, %n, %d : !q, !q, !v, !v, !row, !row -> !row
  // CHECK: attn.attention_grad_delta {{.*}} d_lse(%{{.*}} : tensor<?x?x?xf32>) scale(%{{.*}}) sink(%{{.*}} : tensor<?xf32>) at(%{{.*}})
  // CHECK: mask(
  %all = attn.attention_grad_delta %q, %k, %v, %do, %n, %d d_lse(%d : !row) scale(%c) sink(%sink : !vec) at(%i, %i, %i, %i)
    mask(%b, %h, %m, %x) {
      %keep = arith.cmpi sle, %x, %m : index
      attn.yield %keep : i1
    } : !q, !q, !v, !v, !row, !row -> !row
  return %plain, %all : !row, !row
}

// CHECK-LABEL: func @query(
func.func @query(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row, %c: f32, %i: index, %slopes: !vec) -> (!q, !vec) {
  // CHECK: attn.attention_grad_query {{.*}} scale(%{{.*}}) at(%{{.*}}) wrt(%{{.*}} : tensor<?xf32>)
  // CHECK: grad(
  // CHECK: -> d_query(tensor<?x?x?x64xbf16>) d_wrt(tensor<?xf32>)
  %dq, %dw = attn.attention_grad_query %q, %k, %v, %do, %n, %d scale(%c) at(%i, %i, %i, %i) wrt(%slopes : !vec)
    grad(%s, %dt, %b, %h, %m, %x) {
      attn.contribute %dt to %slopes[%h] : !vec
      attn.yield %dt : f32
    } : !q, !q, !v, !v, !row, !row -> d_query(!q) d_wrt(!vec)
  return %dq, %dw : !q, !vec
}

// CHECK-LABEL: func @key_value(
func.func @key_value(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row) -> (!q, !v, !v) {
  // CHECK: attn.attention_grad_key_value {{.*}} -> d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x32xbf16>)
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %n, %d : !q, !q, !v, !v, !row, !row -> d_key(!q) d_value(!v)
  // CHECK: attn.attention_grad_key_value {{.*}} -> d_value(tensor<?x?x?x32xbf16>)
  %dv2 = attn.attention_grad_key_value %q, %k, %v, %do, %n, %d : !q, !q, !v, !v, !row, !row -> d_value(!v)
  return %dk, %dv, %dv2 : !q, !v, !v
}
