// RUN: attn-opt %s --attn-derive-score --split-input-file --verify-diagnostics

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>

// Arithmetic on bits has no derivative, though its result is a float again.
func.func @bits(%q: !t, %l: !row) -> !t {
  // expected-note@+1 {{a grad region written by hand is taken instead}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %one = arith.constant 1 : i32
      %i = arith.bitcast %s : f32 to i32
      %j = arith.addi %i, %one : i32
      // expected-error@+1 {{'arith.bitcast' op expected an op with a derivative between the score and the result, got one without}}
      %t = arith.bitcast %j : i32 to f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// -----

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>
func.func @variants(%q: !t, %l: !row) -> !t {
  // expected-error@+1 {{expected score and mask regions, got variants (attn-expand-variants turns them into regions)}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q variants [#attn.softcap<2.0>] : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// -----

func.func @room(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+2 {{attn-derive-score: expected room 1 'problem', got room 3 'online'}}
  // expected-note@+1 {{expected attn.attention, got a part of the online softmax}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}
