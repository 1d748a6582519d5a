// RUN: attn-opt %s --convert-attn-to-linalg --split-input-file --verify-diagnostics

func.func @variants(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  // expected-error@+1 {{expected score and mask regions, got variants (attn-expand-variants turns them into regions)}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<top_left>] : tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32> -> tensor<1x2x3x16xf32>
  return %o : tensor<1x2x3x16xf32>
}

// -----

func.func @online(%acc: tensor<8x16xf32>, %row: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+1 {{expected attn.attention: the definition knows no running state}}
  %r = attn.normalize %acc, %row, %row outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}
