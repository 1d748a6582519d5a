// RUN: attn-opt %s --attn-split-grad --split-input-file --verify-diagnostics

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>
func.func @variants(%q: !t, %l: !row) -> !t {
  // expected-error@+1 {{expected score and mask regions, got variants (attn-expand-variants turns them into regions)}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q variants [#attn.softcap<2.0>] : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// -----

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>
func.func @not_derived(%q: !t, %l: !row) -> !t {
  // expected-error@+1 {{expected a grad region beside the score region, got none (attn-derive-score writes it)}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}
