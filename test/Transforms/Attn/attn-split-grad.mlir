// RUN: attn-opt %s --attn-split-grad | FileCheck %s

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>
!x = tensor<?xf32>

// Rows, then a sum over keys and one over rows, and one over both for a captured tensor, whose delta has no error.
// CHECK-LABEL: func @all(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x16xbf16>, %[[K:[a-z0-9]+]]: tensor<?x?x?x16xbf16>, %[[V:[a-z0-9]+]]: tensor<?x?x?x16xbf16>,
// CHECK-SAME: %[[O:[a-z0-9]+]]: tensor<?x?x?x16xbf16>, %[[L:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[DO:[a-z0-9]+]]: tensor<?x?x?x16xbf16>, %[[X:[a-z0-9]+]]: tensor<?xf32>
func.func @all(%q: !t, %k: !t, %v: !t, %o: !t, %l: !row, %do: !t, %x: !x, %c: f32) -> (!t, !t, !t, !x) {
  // CHECK: %[[N:.*]], %[[D:.*]] = attn.row_delta %[[O]], %[[DO]], %[[L]] d_lse(%[[L]] : {{.*}}) {attn.rounds_up, note}
  // CHECK: %[[DQ:.*]] = attn.attention_grad_query %[[Q]], %[[K]], %[[V]], %[[DO]], %[[N]], %[[D]] scale(%{{.*}}) {note}
  // CHECK:   grad(
  // CHECK-NOT: attn.contribute
  // CHECK: %[[DK:.*]], %[[DV:.*]] = attn.attention_grad_key_value %[[Q]], %[[K]], %[[V]], %[[DO]], %[[N]], %[[D]] scale(%{{.*}}) {note}
  // CHECK:   mask(
  // CHECK:   grad(
  // CHECK-NOT: attn.contribute
  // CHECK: %[[E:.*]] = attn.attention_grad_delta %[[Q]], %[[K]], %[[V]], %[[DO]], %[[N]], %[[D]] d_lse(%[[L]] : {{.*}}) scale(%{{.*}}) {note}
  // CHECK:   score(
  // CHECK:   mask(
  // CHECK-NOT: grad(
  // CHECK: %[[DX:.*]] = attn.attention_grad_query %[[Q]], %[[K]], %[[V]], %[[DO]], %[[N]], %[[E]] scale(%{{.*}}) wrt(%[[X]] : tensor<?xf32>) {note}
  // CHECK:   grad(
  // CHECK:     attn.contribute
  // CHECK: return %[[DQ]], %[[DK]], %[[DV]], %[[DX]]
  %r:4 = attn.attention_grad %q, %k, %v, %o, %l, %do d_lse(%l : !row) scale(%c) wrt(%x : !x) {note}
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h] : !x
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[%h] : !x
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t) d_wrt(!x)
  return %r#0, %r#1, %r#2, %r#3 : !t, !t, !t, !x
}

// What nobody wants is no pass.
// CHECK-LABEL: func @value(
func.func @value(%q: !t, %l: !row) -> !t {
  // CHECK: attn.row_delta
  // CHECK-NOT: attn.attention_grad_query
  // CHECK: attn.attention_grad_key_value {{.*}} -> d_value(tensor<?x?x?x16xbf16>)
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q : !t, !t, !t, !t, !row, !t -> d_value(!t)
  return %d : !t
}

// CHECK-LABEL: func @sink(
// CHECK-SAME: %[[L:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[SINK:[a-z0-9]+]]: tensor<?xf32>)
func.func @sink(%q: !t, %l: !row, %sink: !x) -> !x {
  // CHECK: %{{.*}}, %[[D:.*]] = attn.row_delta
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "reduction"]} ins(%[[L]], %[[D]], %[[SINK]] :
  // CHECK:   math.exp
  // CHECK: return %[[SUM]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q sink(%sink : !x) : !t, !t, !t, !t, !row, !t -> d_sink(!x)
  return %d : !x
}

// Shares are f32; a sum of f64 is one from the start.
// CHECK-LABEL: func @wide_sink(
func.func @wide_sink(%q: !t, %l: tensor<?x?x?xf64>, %sink: !x) -> tensor<?xf64> {
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?xf64>)
  // CHECK:   arith.truncf %{{.*}} : f64 to f32
  // CHECK:   %[[TERM:.*]] = arith.extf %{{.*}} : f32 to f64
  // CHECK:   arith.subf %{{.*}}, %[[TERM]] : f64
  // CHECK: return %[[SUM]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q sink(%sink : !x) : !t, !t, !t, !t, tensor<?x?x?xf64>, !t -> d_sink(tensor<?xf64>)
  return %d : tensor<?xf64>
}

// What lse lost to rounding goes to both passes.
// CHECK-LABEL: func @low(
// CHECK-SAME: %[[LOW:[a-z0-9]+]]: tensor<?x?x?xf32>)
func.func @low(%q: !t, %l: !row, %low: !row) -> (!t, !t) {
  // CHECK: %{{.*}}, %{{.*}}, %[[NEG:.*]] = attn.row_delta {{.*}} lse_low(%[[LOW]] : tensor<?x?x?xf32>)
  // CHECK: attn.attention_grad_query {{.*}} neg_low2(%[[NEG]] : tensor<?x?x?xf32>)
  // CHECK: attn.attention_grad_key_value {{.*}} neg_low2(%[[NEG]] : tensor<?x?x?xf32>)
  %d:2 = attn.attention_grad %q, %q, %q, %q, %l, %q lse_low(%low : !row) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t)
  return %d#0, %d#1 : !t, !t
}
