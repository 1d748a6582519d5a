// RUN: attn-opt %s --split-input-file --verify-diagnostics

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @grad_step_c1(%q: !m, %r: !r, %c: f32, %acc: tensor<8xf32>) {
  // expected-error@+1 {{expected acc of rank 2 (M, D), got rank 1}}
  %dq = attn.grad_query_step %q, %q, %q, %q, %r, %r scale(%c) outs(%acc) : !m, !m, !m, !m, !r, !r, tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @grad_step_c1_element(%q: !m, %r: !r, %c: f32, %acc: tensor<8x16xf16>) {
  // expected-error@+1 {{expected acc elements of type f32, got 'f16'}}
  %dq = attn.grad_query_step %q, %q, %q, %q, %r, %r scale(%c) outs(%acc) : !m, !m, !m, !m, !r, !r, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}

// -----

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @grad_step_c2(%q: !m, %k: tensor<4x16xf32>, %r: !r, %c: f32) {
  // expected-error@+1 {{expected N of key and acc_key to agree, got 4 and 8}}
  %dkv:2 = attn.grad_key_value_step %q, %k, %k, %q, %r, %r scale(%c) outs(%q, %k)
    : !m, tensor<4x16xf32>, tensor<4x16xf32>, !m, !r, !r, !m, tensor<4x16xf32> -> !m, tensor<4x16xf32>
  return
}

// -----

!r = tensor<8xf32>
func.func @grad_rows_c1(%o: tensor<8x16xbf16>, %r: !r, %lse: tensor<7xf32>) {
  // expected-error@+1 {{expected M of output and lse to agree, got 8 and 7}}
  %s:2 = attn.grad_rows %o, %o, %lse outs(%r, %r) : tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<7xf32>, !r, !r -> !r, !r
  return
}

// -----

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @grad_delta_step_c1(%q: !m, %r: !r, %c: f32) {
  // expected-error@+1 {{expected no grad region, got one}}
  %s:2 = attn.grad_delta_step %q, %q, %q, %q, %r, %r scale(%c) outs(%r, %r) grad(%s, %dt, %b, %h, %m, %n) {
      attn.yield %dt : f32
    } : !m, !m, !m, !m, !r, !r, !r, !r -> !r, !r
  return
}

// -----

!r = tensor<8xf32>
func.func @grad_delta_end_c1(%r: !r, %lse: tensor<7xf32>) {
  // expected-error@+1 {{expected M of weight and d_lse to agree, got 8 and 7}}
  %d = attn.grad_delta_end %r, %r, %r, %r d_lse(%lse : tensor<7xf32>) outs(%r) : !r, !r, !r, !r, !r -> !r
  return
}

// -----

func.func @grad_delta_end_c1_element(%r: tensor<8xf32>, %d: tensor<8xf16>) {
  // expected-error@+1 {{expected delta elements of type f32, got 'f16'}}
  %e = attn.grad_delta_end %r, %r, %r, %d outs(%r) : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @grad_end_c1(%acc: tensor<8x16xbf16>, %out: tensor<8x16xbf16>) {
  // expected-error@+1 {{expected acc elements of type f32, got 'bf16'}}
  %d = attn.grad_end %acc outs(%out) : tensor<8x16xbf16>, tensor<8x16xbf16> -> tensor<8x16xbf16>
  return
}

// -----

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @grad_captured_step_c1(%q: !m, %r: !r, %sum: tensor<3xbf16>, %c: f32) {
  // expected-error@+1 {{expected sum elements of type f32, got 'bf16'}}
  %d = attn.grad_captured_step %q, %q, %q, %q, %r, %r scale(%c) outs(%sum) : !m, !m, !m, !m, !r, !r, tensor<3xbf16> -> tensor<3xbf16>
  return
}

// -----

!m = tensor<8x16xf32>
!r = tensor<8xf32>
func.func @grad_fused_step_c1(%q: !m, %r: !r, %c: f32) {
  // expected-error@+1 {{expected buffers, got 'tensor<8x16xf32>'}}
  %d:3 = attn.grad_fused_step %q, %q, %q, %q, %r, %r scale(%c) outs(%q, %q, %q)
    : !m, !m, !m, !m, !r, !r, !m, !m, !m -> !m, !m, !m
  return
}

// -----

!r = tensor<8xf32>
func.func @grad_rows_c2(%o: tensor<8x16xbf16>, %r: !r) {
  // expected-error@+1 {{expected neg_low2 beside lse_low and not without, got neg_low2 alone}}
  %s:3 = attn.grad_rows %o, %o, %r outs(%r, %r, %r) : tensor<8x16xbf16>, tensor<8x16xbf16>, !r, !r, !r, !r -> !r, !r, !r
  return
}
