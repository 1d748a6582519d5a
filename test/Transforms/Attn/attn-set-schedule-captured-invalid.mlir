// RUN: attn-opt %s --attn-set-schedule=target=cuda --verify-diagnostics

!t = tensor<?x?x?x16xf16>
!row = tensor<?x?x?xf32>
!x = tensor<?xf32>
func.func @captured(%q: !t, %l: !row, %x: !x) -> (!t, !x) {
  // expected-error@+1 {{expected gradients of query, key, value and sink on sm_90a, got one of a captured tensor, which CPUs have: detach it, or run on a CPU}}
  %r:2 = attn.attention_grad_query %q, %q, %q, %q, %l, %l wrt(%x : !x)
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h] : !x
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[%h] : !x
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !row -> d_query(!t) d_wrt(!x)
  return %r#0, %r#1 : !t, !x
}
