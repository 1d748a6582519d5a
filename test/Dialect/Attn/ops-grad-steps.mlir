// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!q = tensor<?x64xbf16>
!v = tensor<?x32xbf16>
!row = tensor<?xf32>
!dq = tensor<?x64xf32>
!dv = tensor<?x32xf32>

// CHECK-LABEL: func @rows(
func.func @rows(%o: !v, %do: !v, %lse: !row, %dl: !row, %e: !row) -> (!row, !row) {
  // CHECK: attn.grad_rows %{{.*}}, %{{.*}}, %{{.*}} d_lse(%{{.*}} : tensor<?xf32>) outs(%{{.*}}, %{{.*}})
  %r:2 = attn.grad_rows %o, %do, %lse d_lse(%dl : !row) outs(%e, %e) : !v, !v, !row, !row, !row -> !row, !row
  return %r#0, %r#1 : !row, !row
}

// CHECK-LABEL: func @query(
func.func @query(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row, %c: f32, %i: index, %acc: !dq) -> !dq {
  // CHECK: attn.grad_query_step {{.*}} scale(%{{.*}}) at(%{{.*}}) outs(%{{.*}})
  // CHECK: grad(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  %dq = attn.grad_query_step %q, %k, %v, %do, %n, %d scale(%c) at(%i, %i, %i, %i) outs(%acc)
    grad(%s, %dt, %b, %h, %m, %j) {
      %ds = arith.mulf %s, %dt : f32
      attn.yield %ds : f32
    } : !q, !q, !v, !v, !row, !row, !dq -> !dq
  return %dq : !dq
}

// CHECK-LABEL: func @fused(
func.func @fused(%q: memref<8x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x32xbf16>, %do: memref<8x32xbf16>, %n: memref<8xf32>,
                 %c: f32, %i: index, %dq: memref<8x64xf32>, %dk: memref<?x64xf32>, %dv: memref<?x32xf32>) {
  // CHECK: attn.grad_fused_step {{.*}} scale(%{{.*}}) at(%{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}})
  attn.grad_fused_step %q, %k, %v, %do, %n, %n scale(%c) at(%i, %i, %i, %i) outs(%dq, %dk, %dv)
    : memref<8x64xbf16>, memref<?x64xbf16>, memref<?x32xbf16>, memref<8x32xbf16>, memref<8xf32>, memref<8xf32>,
      memref<8x64xf32>, memref<?x64xf32>, memref<?x32xf32>
  return
}

// CHECK-LABEL: func @captured(
func.func @captured(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row, %c: f32, %i: index, %x: tensor<?x?xf32>, %sum: tensor<3x?xf32>)
    -> tensor<3x?xf32> {
  // CHECK: attn.grad_captured_step {{.*}} scale(%{{.*}}) at(%{{.*}}) outs(%{{.*}})
  // CHECK:   attn.contribute %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : tensor<?x?xf32>
  %dx = attn.grad_captured_step %q, %k, %v, %do, %n, %d scale(%c) at(%i, %i, %i, %i) outs(%sum)
    grad(%s, %dt, %b, %h, %m, %j) {
      attn.contribute %dt to %x[%h, %j] : tensor<?x?xf32>
      attn.yield %dt : f32
    } : !q, !q, !v, !v, !row, !row, tensor<3x?xf32> -> tensor<3x?xf32>
  return %dx : tensor<3x?xf32>
}

// CHECK-LABEL: func @delta(
func.func @delta(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row, %c: f32, %i: index, %e: !row) -> (!row, !row) {
  // CHECK: %[[S:.*]]:2 = attn.grad_delta_step {{.*}} scale(%{{.*}}) at(%{{.*}}) outs(%{{.*}}, %{{.*}})
  // CHECK: mask(
  %s:2 = attn.grad_delta_step %q, %k, %v, %do, %n, %d scale(%c) at(%i, %i, %i, %i) outs(%e, %e)
    mask(%b, %h, %m, %j) {
      %keep = arith.cmpi sle, %j, %m : index
      attn.yield %keep : i1
    } : !q, !q, !v, !v, !row, !row, !row, !row -> !row, !row
  // CHECK: attn.grad_delta_end %[[S]]#0, %[[S]]#1, %{{.*}}, %{{.*}} outs(%{{.*}}) : {{.*}} -> tensor<?xf32>
  %plain = attn.grad_delta_end %s#0, %s#1, %n, %d outs(%e) : !row, !row, !row, !row, !row -> !row
  // CHECK: attn.grad_delta_end {{.*}} d_lse(%{{.*}} : tensor<?xf32>) sink(%{{.*}}) outs(%{{.*}})
  %all = attn.grad_delta_end %s#0, %s#1, %n, %d d_lse(%d : !row) sink(%c) outs(%e) : !row, !row, !row, !row, !row -> !row
  return %plain, %all : !row, !row
}

// CHECK-LABEL: func @key_value(
func.func @key_value(%q: !q, %k: !q, %v: !v, %do: !v, %n: !row, %d: !row, %c: f32, %dk: !dq, %dv: !dv) -> (!q, !v) {
  // CHECK: attn.grad_key_value_step {{.*}} outs(%{{.*}}, %{{.*}})
  %s:2 = attn.grad_key_value_step %q, %k, %v, %do, %n, %d scale(%c) outs(%dk, %dv)
    : !q, !q, !v, !v, !row, !row, !dq, !dv -> !dq, !dv
  // CHECK: attn.grad_end %{{.*}} scale(%{{.*}}) outs(%{{.*}}) : tensor<?x64xf32>, tensor<?x64xbf16> -> tensor<?x64xbf16>
  %gk = attn.grad_end %s#0 scale(%c) outs(%k) : !dq, !q -> !q
  // CHECK: attn.grad_end %{{.*}} outs(%{{.*}}) : tensor<?x32xf32>, tensor<?x32xbf16> -> tensor<?x32xbf16>
  %gv = attn.grad_end %s#1 outs(%v) : !dv, !v -> !v
  return %gk, %gv : !q, !v
}

// CHECK-LABEL: func @buffers(
func.func @buffers(%q: memref<8x64xf32>, %r: memref<8xf32>, %c: f32, %acc: memref<8x64xf32>) {
  // CHECK: attn.grad_query_step {{.*}} outs(%{{.*}}) : memref<8x64xf32>
  attn.grad_query_step %q, %q, %q, %q, %r, %r scale(%c) outs(%acc) : memref<8x64xf32>, memref<8x64xf32>, memref<8x64xf32>,
    memref<8x64xf32>, memref<8xf32>, memref<8xf32>, memref<8x64xf32>
  return
}
