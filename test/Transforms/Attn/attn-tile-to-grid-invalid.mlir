// RUN: attn-opt %s --attn-tile-to-grid --split-input-file --verify-diagnostics

func.func @no_schedule(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{expected a 'attn.schedule' attribute (attn-set-schedule attaches one)}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

// -----

func.func @variants(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{expected score and mask regions, got variants (attn-expand-variants turns them into regions)}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<top_left>] {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

// -----

func.func @no_keys(%q: tensor<1x2x3x16xf16>, %k: tensor<1x2x0x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{expected static extents above 0, got 'tensor<1x2x0x16xf16>' (a dynamic extent may be 0)}}
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<1x2x3x16xf16>, tensor<1x2x0x16xf16>, tensor<1x2x0x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

// -----

!t = tensor<?x?x?x16xf16>
!row = tensor<?x?x?xf32>
!x = tensor<?xf32>
func.func @captured_with_keys(%q: !t, %l: !row, %x: !x) -> (!t, !x) {
  // expected-error@+3 {{expected no gradients of captured tensors, got 1: they are sums over all tiles}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %r:2 = attn.attention_grad_key_value %q, %q, %q, %q, %l, %l wrt(%x : !x) {attn.schedule = #attn.schedule<block_m = 32, block_n = 32>}
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h] : !x
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[%h] : !x
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !row -> d_key(!t) d_wrt(!x)
  return %r#0, %r#1 : !t, !x
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
module attributes {plan.target = #plan.target<"sm_90a">} {
  func.func @sum_in_two_dimensions(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
    // expected-error@+1 {{expected a sum in one dimension, got one in 2}}
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x4xf32>) outs(%b : tensor<4x4xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<4x4xf32>
    return %r : tensor<4x4xf32>
  }
}

// -----

#in = affine_map<(d0, d1) -> (d0, d1)>
#out = affine_map<(d0, d1) -> (d1)>
module attributes {plan.target = #plan.target<"sm_90a">} {
  func.func @sum_of_nothing(%a: tensor<0x8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error@+1 {{expected static extents above 0, got 'tensor<0x8xf32>' (a dynamic extent may be 0)}}
    %r = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<0x8xf32>) outs(%b : tensor<8xf32>) {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    return %r : tensor<8xf32>
  }
}

// -----

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>
func.func @no_key_heads(%q: !t, %l: !row) -> (!t, !t) {
  %none = tensor.empty() : tensor<4x0x4x64xbf16>
  %k = tensor.cast %none : tensor<4x0x4x64xbf16> to !t
  // expected-error@+3 {{expected a head of keys or more, got none}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %r:2 = attn.attention_grad_key_value %q, %k, %k, %q, %l, %l {attn.schedule = #attn.schedule<block_m = 32, block_n = 32>}
    : !t, !t, !t, !t, !row, !row -> d_key(!t) d_value(!t)
  return %r#0, %r#1 : !t, !t
}

// -----

!t = tensor<?x?x?x64xbf16>
func.func @no_key_heads_forward(%q: !t) -> !t {
  %none = tensor.empty() : tensor<4x0x4x64xbf16>
  %k = tensor.cast %none : tensor<4x0x4x64xbf16> to !t
  // expected-error@+3 {{expected a head of keys or more, got none}}
  // expected-error@+2 {{faild to tile operation}}
  // expected-error@+1 {{failed to generate tiling loops}}
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 32, block_n = 32>} : !t, !t, !t -> !t
  return %o : !t
}
