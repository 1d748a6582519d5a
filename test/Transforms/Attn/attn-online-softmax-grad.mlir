// RUN: attn-opt %s --attn-set-schedule="block-m=32 block-n=48" --attn-tile-to-grid --attn-online-softmax --canonicalize --cse \
// RUN:   | FileCheck %s

!q = tensor<2x6x?x64xbf16>
!k = tensor<2x2x?x64xbf16>
!row = tensor<2x6x?xf32>

// CHECK-LABEL: func @delta(
func.func @delta(%q: !q, %k: !k, %do: !q, %nl: !row, %d: !row, %sink: tensor<6xf32>) -> !row {
  // CHECK: scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) =
  // CHECK: %[[ZERO:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?xf32>)
  // CHECK: %[[S:.*]]:2 = attn.grad_delta_step {{.*}} outs(%[[ZERO]], %[[ZERO]])
  // CHECK: %[[SINK:.*]] = tensor.extract %
  // CHECK: %[[E:.*]] = attn.grad_delta_end %[[S]]#0, %[[S]]#1, {{.*}} d_lse({{.*}}) sink(%[[SINK]])
  // CHECK: tensor.parallel_insert_slice %[[E]]
  %e = attn.attention_grad_delta %q, %k, %k, %do, %nl, %d d_lse(%d : !row) sink(%sink : tensor<6xf32>) : !q, !k, !k, !q, !row, !row -> !row
  return %e : !row
}

// CHECK-LABEL: func @grad(
func.func @grad(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !row, %do: !q) -> (!q, !k, !k) {
  // CHECK: attn.grad_rows {{.*}} : tensor<?x64xbf16>, tensor<?x64xbf16>, tensor<?xf32>
  %nl, %delta = attn.row_delta %o, %do, %lse : !q, !q, !row -> !row, !row
  // The factor of the dot products, 1/8, counts in the scores and once at the end.
  // CHECK: scf.forall
  // CHECK: %[[ZERO:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x64xf32>)
  // CHECK: %[[STEP:.*]] = attn.grad_query_step {{.*}} scale(%[[C:.*]]) at({{.*}}) outs(%[[ZERO]])
  // CHECK: grad(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK: %[[DQ:.*]] = attn.grad_end %[[STEP]] scale(%[[C]]) outs({{.*}}) : tensor<?x64xf32>, tensor<?x64xbf16>
  // CHECK: tensor.parallel_insert_slice %[[DQ]]
  %dq = attn.attention_grad_query %q, %k, %v, %do, %nl, %delta grad(%s, %dt, %b, %h, %m, %n) {
      %ds = arith.addf %dt, %dt : f32
      attn.yield %ds : f32
    } : !q, !k, !k, !q, !row, !row -> d_query(!q)
  // Three heads of a group, one after the other, into one sum.
  // CHECK: scf.forall (%{{.*}}, %[[HKV:.*]], %{{.*}}) =
  // CHECK: %[[SUMS:.*]]:2 = scf.for %[[I:.*]] = %c0 to %c3 step %c1 iter_args(%[[DKI:.*]] = %{{.*}}, %[[DVI:.*]] = %{{.*}})
  // CHECK: %[[H:.*]] = arith.addi %{{.*}}, %[[I]]
  // CHECK: attn.grad_key_value_step {{.*}} at(%{{.*}}, %[[H]], %{{.*}}) outs(%[[DKI]], %[[DVI]])
  // CHECK: attn.grad_end %[[SUMS]]#0 scale(%[[C]])
  // CHECK: attn.grad_end %[[SUMS]]#1 outs(
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %nl, %delta
    : !q, !k, !k, !q, !row, !row -> d_key(!k) d_value(!k)
  return %dq, %dk, %dv : !q, !k, !k
}
