// RUN: attn-opt %s --split-input-file --verify-diagnostics

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
!x = tensor<4xf32>
func.func @contribute_c1(%q: !t, %l: !row, %x: !x) {
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : !x)
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected to stand in a grad region, got a region before it}}
      attn.contribute %s to %x[%h] : !x
      attn.yield %s : f32
    } : !t, !t, !t, !t, !row, !t -> d_wrt(!x)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
!x = tensor<4xf32>
func.func @contribute_c2(%q: !t, %l: !row, %x: !x, %y: !x) {
  // expected-note@+1 {{the op with wrt}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : !x)
    grad(%s, %dt, %b, %h, %m, %n) {
      // expected-error@+1 {{expected a tensor in wrt, got another one}}
      attn.contribute %dt to %y[%h] : !x
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !t -> d_wrt(!x)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
!x = tensor<4xf32>
func.func @contribute_c3(%q: !t, %l: !row, %x: !x) {
  %d = attn.attention_grad_query %q, %q, %q, %q, %l, %l wrt(%x : !x)
    grad(%s, %dt, %b, %h, %m, %n) {
      // expected-error@+1 {{expected 1 indices into 'tensor<4xf32>', got 2}}
      attn.contribute %dt to %x[%h, %n] : !x
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !row -> d_wrt(!x)
  return
}

// -----

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @contribute_c4(%q: !m, %r: !r, %x: tensor<?x?xf32>, %c: f32) {
  %d = attn.grad_captured_step %q, %q, %q, %q, %r, %r scale(%c) outs(%r)
    grad(%s, %dt, %b, %h, %m, %n) {
      // expected-error@+1 {{expected 1 indices into the sum of 'tensor<8xf32>', got 2}}
      attn.contribute %dt to %x[%h, %n] : tensor<?x?xf32>
      attn.yield %dt : f32
    } : !m, !m, !m, !m, !r, !r, !r -> !r
  return
}
