// RUN: attn-opt %s --convert-attn-to-linalg --split-input-file --verify-diagnostics

func.func @variants(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  // expected-error@+1 {{expected score and mask regions, got variants (attn-expand-variants turns them into regions)}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<top_left>] : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}

// -----

func.func @online(%acc: tensor<8x16xf32>, %row: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+2 {{convert-attn-to-linalg: expected room 1 'problem' to room 2 'grid', got room 3 'online'}}
  // expected-note@+1 {{expected attn.attention, got a part of the online softmax}}
  %r = attn.normalize %acc, %row, %row outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

func.func @not_derived(%q: tensor<1x2x3x16xf32>, %l: tensor<1x2x3xf32>) -> tensor<1x2x3x16xf32> {
  // expected-error@+1 {{expected a grad region beside the score region, got none (attn-derive-score writes it)}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      attn.yield %t : f32
    } : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3xf32>, tensor<1x2x3x16xf32> -> d_query(tensor<1x2x3x16xf32>)
  return %d : tensor<1x2x3x16xf32>
}
