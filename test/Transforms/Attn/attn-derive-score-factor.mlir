// RUN: attn-opt %s --attn-derive-score --attn-split-grad --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>

// g13: nothing is derived through the factor; both passes take it.
// CHECK-LABEL: func @factor(
func.func @factor(%q: !t, %l: !row, %f: tensor<?xf32>) -> (!t, !t) {
  // CHECK: attn.attention_grad_query
  // CHECK: %[[F:.*]] = tensor.extract
  // CHECK: attn.yield %{{.*}}, %[[F]] : f32, f32
  // CHECK: grad(%{{.*}}, %[[DT:[a-z0-9_]+]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: attn.yield %[[DT]] : f32
  // CHECK: attn.attention_grad_key_value
  // CHECK: attn.yield %{{.*}}, %{{.*}} : f32, f32
  %d:2 = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %f[%n] : tensor<?xf32>
      attn.yield %s, %x : f32, f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t) d_value(!t)
  return %d#0, %d#1 : !t, !t
}

// -----

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>

func.func @of_the_score(%q: !t, %l: !row) -> !t {
  // expected-note@+1 {{tensors that the factor reads have no gradient: leave them out of wrt}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %f = math.exp %s : f32
      // expected-error@+1 {{expected a factor that moves neither with the score nor with a tensor in wrt, got one that does}}
      attn.yield %s, %f : f32, f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// -----

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>

func.func @of_a_tensor(%q: !t, %l: !row, %f: tensor<?xf32>) -> tensor<?xf32> {
  // expected-note@+1 {{tensors that the factor reads have no gradient: leave them out of wrt}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%f : tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %f[%n] : tensor<?xf32>
      // expected-error@+1 {{expected a factor that moves neither with the score nor with a tensor in wrt, got one that does}}
      attn.yield %s, %x : f32, f32
    } : !t, !t, !t, !t, !row, !t -> d_wrt(tensor<?xf32>)
  return %d : tensor<?xf32>
}
