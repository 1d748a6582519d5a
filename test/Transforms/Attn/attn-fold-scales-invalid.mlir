// RUN: attn-opt %s --attn-fold-scales --split-input-file --verify-diagnostics

func.func @some(%q: tensor<1x2x8x64xbf16>, %k: tensor<1x2x8x64xf8E4M3FN>, %s: tensor<f32>) -> tensor<1x2x8x64xbf16> {
  %w = attn.scaled %k, %s : tensor<1x2x8x64xf8E4M3FN>, tensor<f32> -> tensor<1x2x8x64xbf16>
  // expected-error@+1 {{expected query, key and value that are all scaled, or none, got a query that is not}}
  %o = attn.attention %q, %w, %w : tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16> -> tensor<1x2x8x64xbf16>
  return %o : tensor<1x2x8x64xbf16>
}

// -----

func.func @types(%q: tensor<1x2x8x64xf8E5M2>, %k: tensor<1x2x8x64xf8E4M3FN>, %s: tensor<f32>) -> tensor<1x2x8x64xbf16> {
  %v = attn.scaled %q, %s : tensor<1x2x8x64xf8E5M2>, tensor<f32> -> tensor<1x2x8x64xbf16>
  %w = attn.scaled %k, %s : tensor<1x2x8x64xf8E4M3FN>, tensor<f32> -> tensor<1x2x8x64xbf16>
  // expected-error@+1 {{expected scaled elements of one type, got 'tensor<1x2x8x64xf8E5M2>' and 'tensor<1x2x8x64xf8E4M3FN>'}}
  %o = attn.attention %v, %w, %w : tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16> -> tensor<1x2x8x64xbf16>
  return %o : tensor<1x2x8x64xbf16>
}

// -----

func.func @gradient(%q: tensor<1x2x8x64xf8E4M3FN>, %s: tensor<f32>, %o: tensor<1x2x8x64xbf16>, %lse: tensor<1x2x8xf32>) -> tensor<1x2x8x64xbf16> {
  %w = attn.scaled %q, %s : tensor<1x2x8x64xf8E4M3FN>, tensor<f32> -> tensor<1x2x8x64xbf16>
  // expected-error@+1 {{has no scaled operands: gradients are of elements of 16 bits or more, got 'tensor<1x2x8x64xf8E4M3FN>'}}
  %dq = attn.attention_grad %w, %w, %w, %o, %lse, %o : tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16>, tensor<1x2x8xf32>, tensor<1x2x8x64xbf16> -> d_query(tensor<1x2x8x64xbf16>)
  return %dq : tensor<1x2x8x64xbf16>
}

// -----

func.func @other(%q: tensor<1x2x8x64xf8E4M3FN>, %s: tensor<f32>) -> tensor<1x2x8x64xbf16> {
  // expected-error@+1 {{expected attention and sizes as its users, got 'func.return'}}
  %w = attn.scaled %q, %s : tensor<1x2x8x64xf8E4M3FN>, tensor<f32> -> tensor<1x2x8x64xbf16>
  return %w : tensor<1x2x8x64xbf16>
}
