// RUN: attn-opt %s --split-input-file --verify-diagnostics

// Spelled in the generic form: the syntax knows the types.
func.func @attention_c11(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected mask region arguments ('index', 'index', 'index', 'index'), got ('i32', 'index', 'index', 'index')}}
  %o = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> ({}, {
  ^bb0(%b: i32, %h: index, %m: index, %n: index):
    %keep = arith.constant true
    attn.yield %keep : i1
  }) : (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c11_score(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected score region arguments ('f32', 'index', 'index', 'index', 'index'), got ('f64')}}
  %o = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%s: f64):
    attn.yield %s : f64
  }, {}) : (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @no_arguments(%q: tensor<2x4x3x16xf32>, %s: f32) {
  // expected-error@+1 {{expected score region arguments ('f32', 'index', 'index', 'index', 'index'), got ()}}
  %o = "attn.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> ({
    attn.yield %s : f32
  }, {}) : (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32>
  return
}
