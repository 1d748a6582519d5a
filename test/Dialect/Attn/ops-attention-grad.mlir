// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!q = tensor<?x?x?x64xbf16>
!v = tensor<?x?x?x32xbf16>
!row = tensor<?x?x?xf32>
!vec = tensor<?xf32>

// Only what is wanted is a result.
// CHECK-LABEL: func @one(
func.func @one(%q: !q, %k: !q, %v: !v, %o: !v, %lse: !row, %do: !v) -> !q {
  // CHECK: attn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> d_key(tensor<?x?x?x64xbf16>)
  %dk = attn.attention_grad %q, %k, %v, %o, %lse, %do : !q, !q, !v, !v, !row, !v -> d_key(!q)
  return %dk : !q
}

// Everything at once, in the one order of the syntax.
// CHECK-LABEL: func @all(
func.func @all(%q: !q, %k: !q, %v: !v, %o: !v, %lse: !row, %do: !v, %dl: !row, %c: f32, %sink: !vec, %i: index, %slopes: !vec)
    -> (!q, !q, !v, !vec, !vec) {
  // CHECK: attn.attention_grad {{.*}} variants [#attn.alibi<top_left>] captures(%{{[a-z0-9]+}} : tensor<?xf32>)
  // CHECK-SAME: d_lse(%{{[a-z0-9]+}} : tensor<?x?x?xf32>) scale(%{{[a-z0-9]+}}) sink(%{{[a-z0-9]+}} : tensor<?xf32>) at({{[^)]*}}) wrt(%{{[a-z0-9]+}} : tensor<?xf32>)
  // CHECK: score({{.*}}) {
  // CHECK: mask(%{{.*}}) {
  // CHECK: grad(%{{.*}}, %[[DT:.*]], %{{.*}}, %[[H:.*]], %{{.*}}, %{{.*}}) {
  // CHECK:   attn.contribute %{{.*}} to %{{.*}}[%[[H]]] : tensor<?xf32>
  // CHECK:   attn.yield %[[DT]] : f32
  // CHECK: -> d_query(tensor<?x?x?x64xbf16>) d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x32xbf16>) d_sink(tensor<?xf32>) d_wrt(tensor<?xf32>)
  %r:5 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.alibi<top_left>] captures(%slopes : !vec)
    d_lse(%dl : !row) scale(%c) sink(%sink : !vec) at(%i, %i, %i, %i) wrt(%slopes : !vec)
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %slopes[%h] : !vec
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi ne, %m, %n : index
      attn.yield %keep : i1
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %slopes[%h] : !vec
      attn.yield %dt : f32
    } : !q, !q, !v, !v, !row, !v -> d_query(!q) d_key(!q) d_value(!v) d_sink(!vec) d_wrt(!vec)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : !q, !q, !v, !vec, !vec
}

// What autograd calls with: f32 gradients of f64 results.
// CHECK-LABEL: func @wide(
func.func @wide(%q: !q, %k: !q, %v: !v, %o: tensor<?x?x?x32xf64>, %lse: tensor<?x?x?xf64>, %do: tensor<?x?x?x32xf32>) -> tensor<?x?x?x64xf32> {
  // CHECK: -> d_query(tensor<?x?x?x64xf32>)
  %dq = attn.attention_grad %q, %k, %v, %o, %lse, %do
      : !q, !q, !v, tensor<?x?x?x32xf64>, tensor<?x?x?xf64>, tensor<?x?x?x32xf32> -> d_query(tensor<?x?x?x64xf32>)
  return %dq : tensor<?x?x?x64xf32>
}
