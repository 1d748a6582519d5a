// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c14(%q: tensor<2x4x3x16xf32>, %f: f16) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected the score region to yield 'f32', got 'f16'}}
      attn.yield %f : f16
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c14_mask(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-error@+1 {{expected the mask region to yield 'i1', got 'index'}}
      attn.yield %n : index
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c14_captured_tensor(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected the score region to yield 'f32', got 'tensor<2x4x3x16xf32>'}}
      attn.yield %q : tensor<2x4x3x16xf32>
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @yield_alone(%x: i1) {
  // expected-error@+1 {{'attn.yield' op expects parent op to be one of 'attn.attention, attn.online_attention, attn.tile_status, attn.attention_grad, attn.attention_grad_delta, attn.attention_grad_query, attn.attention_grad_key_value, attn.grad_delta_step, attn.grad_query_step, attn.grad_key_value_step, attn.grad_fused_step, attn.grad_captured_step'}}
  attn.yield %x : i1
}

// -----

func.func @attention_c21(%q: tensor<2x4x3x16xf32>, %f: f16) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected a factor of type 'f32', got 'f16'}}
      attn.yield %s, %f : f32, f16
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c21_mask(%q: tensor<2x4x3x16xf32>, %keep: i1, %f: f32) {
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-error@+1 {{expected a mask region to yield one value, got a factor beside it (score regions have one)}}
      attn.yield %keep, %f : i1, f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c21_grad(%q: tensor<2x4x3x16xf32>, %l: tensor<2x4x3xf32>) {
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      attn.yield %s, %s : f32, f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      // expected-error@+1 {{expected a grad region to yield one value, got a factor beside it (score regions have one)}}
      attn.yield %dt, %dt : f32, f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3xf32>, tensor<2x4x3x16xf32> -> d_query(tensor<2x4x3x16xf32>)
  return
}
