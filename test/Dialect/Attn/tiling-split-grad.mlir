// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>

// Rows of one query head, all keys of its key head.
// CHECK-DAG: #[[GROUP:.*]] = affine_map<()[s0, s1] -> (s0 floordiv s1)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<()[s0, s1, s2] -> (s0 * (s1 floordiv s2))>
// CHECK-LABEL: func @query(
func.func @query(%q: !t, %k: !t, %do: !t, %n: !row, %d: !row) -> !t {
  // CHECK: scf.for %[[B:.*]] = %c0
  // CHECK: scf.for %[[H:.*]] = %c0
  // CHECK: scf.for %[[M:.*]] = %c0 {{.*}} step %c32
  // CHECK: %[[KH:.*]] = affine.apply
  // CHECK: tensor.extract_slice %arg0[%[[B]], %[[H]], %[[M]], 0] [1, 1, %[[SIZE:.*]], 64]
  // CHECK: tensor.extract_slice %arg1[%[[B]], %[[KH]], 0, 0] [1, 1, %{{.*}}, 64]
  // CHECK: tensor.extract_slice %arg3[%[[B]], %[[H]], %[[M]]] [1, 1, %[[SIZE]]]
  // CHECK: attn.attention_grad_query {{.*}} at(%[[B]], %[[H]], %[[M]], %c0)
  // CHECK: grad(
  // CHECK: -> d_query(tensor<1x1x?x64xbf16>)
  %dq = attn.attention_grad_query %q, %k, %k, %do, %n, %d
    grad(%s, %dt, %b, %h, %m, %x) {
      %ds = arith.negf %dt : f32
      attn.yield %ds : f32
    } : !t, !t, !t, !t, !row, !row -> d_query(!t)
  return %dq : !t
}

// Keys of one key head, all rows of the query heads of its group.
// CHECK-LABEL: func @key_value(
func.func @key_value(%q: !t, %k: !t, %do: !t, %n: !row, %d: !row) -> (!t, !t) {
  // CHECK: scf.for %[[B:.*]] = %c0
  // CHECK: scf.for %[[H:.*]] = %c0
  // CHECK: scf.for %[[N:.*]] = %c0 {{.*}} step %c32
  // CHECK-DAG: %[[G:.*]] = affine.apply #[[GROUP]]()
  // CHECK-DAG: %[[QH:.*]] = affine.apply #[[FIRST]]()[%[[H]]
  // CHECK: tensor.extract_slice %arg0[%[[B]], %[[QH]], 0, 0] [1, %[[G]], %{{.*}}, 64]
  // CHECK: tensor.extract_slice %arg1[%[[B]], %[[H]], %[[N]], 0] [1, 1, %[[SIZE:.*]], 64]
  // CHECK: attn.attention_grad_key_value {{.*}} at(%[[B]], %[[QH]], %c0, %[[N]])
  // CHECK: -> d_key(tensor<1x1x?x64xbf16>) d_value(tensor<1x1x?x64xbf16>)
  %dk, %dv = attn.attention_grad_key_value %q, %k, %k, %do, %n, %d : !t, !t, !t, !t, !row, !row -> d_key(!t) d_value(!t)
  return %dk, %dv : !t, !t
}

// Rows of one query head, all keys of its key head, and its sink.
// CHECK-LABEL: func @delta(
func.func @delta(%q: !t, %k: !t, %do: !t, %n: !row, %d: !row, %sink: tensor<?xf32>) -> !row {
  // CHECK: scf.for %[[B:.*]] = %c0
  // CHECK: scf.for %[[H:.*]] = %c0
  // CHECK: scf.for %[[M:.*]] = %c0 {{.*}} step %c32
  // CHECK-DAG: tensor.extract_slice %arg4[%[[B]], %[[H]], %[[M]]] [1, 1, %{{.*}}]
  // CHECK-DAG: tensor.extract_slice %arg5[%[[H]]] [1] [1]
  // CHECK: attn.attention_grad_delta {{.*}} d_lse({{.*}}) sink({{.*}}) at(%[[B]], %[[H]], %[[M]], %c0)
  // CHECK-SAME: -> tensor<1x1x?xf32>
  %e = attn.attention_grad_delta %q, %k, %k, %do, %n, %d d_lse(%d : !row) sink(%sink : tensor<?xf32>) : !t, !t, !t, !t, !row, !row -> !row
  return %e : !row
}

// CHECK-LABEL: func @row_delta(
func.func @row_delta(%o: !t, %do: !t, %lse: !row) -> (!row, !row) {
  // CHECK: scf.for %[[B:.*]] = %c0
  // CHECK: scf.for %[[H:.*]] = %c0
  // CHECK: scf.for %[[M:.*]] = %c0 {{.*}} step %c32
  // CHECK: attn.row_delta {{.*}} : tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?xf32> -> tensor<1x1x?xf32>, tensor<1x1x?xf32>
  %n, %d = attn.row_delta %o, %do, %lse : !t, !t, !row -> !row, !row
  return %n, %d : !row, !row
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %ops = transform.structured.match ops{["attn.attention_grad_delta", "attn.attention_grad_query", "attn.attention_grad_key_value", "attn.row_delta"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.foreach %ops : !transform.any_op {
    ^bb0(%op: !transform.any_op):
      %tiled:4 = transform.structured.tile_using_for %op tile_sizes [1, 1, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    }
    transform.yield
  }
}
