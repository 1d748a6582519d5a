// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @mask_arguments(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    // expected-error@+1 {{expected 4 arguments of the mask region, got 3}}
    mask(%b, %h, %m) {
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @score_arguments(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    // expected-error@+1 {{expected 5 arguments of the score region, got 4}}
    score(%b, %h, %m, %n) {
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @score_before_mask(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %keep = arith.constant true
      attn.yield %keep : i1
    }
    // expected-error@-1 {{expected ':'}}
    score(%s, %b, %h, %m, %n) {
      attn.yield %s : f32
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @variants_are_a_list(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{invalid kind of attribute specified}}
  %o = attn.attention %q, %q, %q variants #attn.causal<top_left> : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @scale_is_f32(%q: tensor<2x4x3x16xf32>, %scale: f64) { // expected-note {{prior use here}}
  // expected-error@+1 {{use of value '%scale' expects different type than prior uses: 'f32' vs 'f64'}}
  %o = attn.attention %q, %q, %q scale(%scale) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @unranked(%q: tensor<*xf32>) {
  // expected-error@+1 {{invalid kind of type specified: expected builtin.tensor, but found 'tensor<*xf32>'}}
  %o = attn.attention %q, %q, %q : tensor<*xf32>, tensor<*xf32>, tensor<*xf32> -> tensor<*xf32>
  return
}

// -----

func.func @buffers_in_room_1(%q: memref<2x4x3x16xf32>) {
  // expected-error@+1 {{invalid kind of type specified: expected builtin.tensor, but found 'memref<2x4x3x16xf32>'}}
  %o = attn.attention %q, %q, %q : memref<2x4x3x16xf32>, memref<2x4x3x16xf32>, memref<2x4x3x16xf32> -> memref<2x4x3x16xf32>
  return
}

// -----

func.func @fact(%x: tensor<?xi32>) {
  // expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'fact' [nondecreasing]}}
  %a = attn.assume sorted %x : tensor<?xi32>
  return
}
