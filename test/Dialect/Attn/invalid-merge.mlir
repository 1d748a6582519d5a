// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @merge_c1(%p: tensor<3xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected partial of rank 2 or more (S, ..., Dv), got }}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3xf32>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c1_partial_lse(%p: tensor<3x8x16xf32>, %pl: tensor<3x8x1xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected partial_lse of rank 2 (S, ...), got rank 3}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8x1xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c1_output(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<3x8x16xf32>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected output of rank 2 (..., Dv), got rank 3}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<3x8x16xf32>, tensor<8xf32> -> tensor<3x8x16xf32>, tensor<8xf32>
  return
}

// -----

func.func @merge_c1_lse(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<f32>) {
  // expected-error@+1 {{expected lse of rank 1 (...), got rank 0}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<f32> -> tensor<8x16xf16>, tensor<f32>
  return
}

// -----

func.func @merge_c2(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf64>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected partial_lse elements of type f32, got 'f64'}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf64>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c2_partial(%p: tensor<3x8x16xi8>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected partial elements of type f16, bf16 or f32, got 'i8'}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xi8>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c2_output(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf64>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected output elements of type f16, bf16 or f32, got 'f64'}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf64>, tensor<8xf32> -> tensor<8x16xf64>, tensor<8xf32>
  return
}

// -----

func.func @merge_c2_lse(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xbf16>) {
  // expected-error@+1 {{expected lse elements of type f32, got 'bf16'}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<8xbf16> -> tensor<8x16xf16>, tensor<8xbf16>
  return
}

// -----

func.func @merge_c3(%p: tensor<3x8x16xf32>, %pl: tensor<4x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected dimension 0 of partial and partial_lse to agree, got 3 and 4}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<4x8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c3_output(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x32xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected dimension 1 of partial past S and output to agree, got 16 and 32}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x32xf16>, tensor<8xf32> -> tensor<8x32xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c3_lse(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<7xf32>) {
  // expected-error@+1 {{expected dimension 0 of output and lse to agree, got 8 and 7}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<7xf32> -> tensor<8x16xf16>, tensor<7xf32>
  return
}

// -----

func.func @merge_c3_lse_of_partial(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<?x16xf16>, %lse: tensor<7xf32>) {
  // expected-error@+1 {{expected dimension 0 of partial past S and lse to agree, got 8 and 7}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<?x16xf16>, tensor<7xf32> -> tensor<?x16xf16>, tensor<7xf32>
  return
}

// -----

func.func @merge_c3_lse_of_partial_lse(%p: tensor<3x?x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<?x16xf16>, %lse: tensor<7xf32>) {
  // expected-error@+1 {{expected dimension 0 of partial_lse past S and lse to agree, got 8 and 7}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x?x16xf32>, tensor<3x8xf32>, tensor<?x16xf16>, tensor<7xf32> -> tensor<?x16xf16>, tensor<7xf32>
  return
}

// -----

func.func @destination_c1(%p: memref<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected all operands to be tensors or all to be buffers, got 3 and 1}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : memref<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c4(%p: tensor<3x8x0xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x0xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected Dv above 0, got 'tensor<3x8x0xf32>' and 'tensor<8x0xf16>'}}
  %r:2 = attn.merge %p, %pl outs(%o, %lse) : tensor<3x8x0xf32>, tensor<3x8xf32>, tensor<8x0xf16>, tensor<8xf32> -> tensor<8x0xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_c1_low(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %low: tensor<8xf32>, %o: tensor<8x16xf16>) {
  // expected-error@+1 {{expected partial_low of rank 2 (S, ...), got rank 1}}
  %r = attn.merge %p, %pl partial_low(%low : tensor<8xf32>) outs(%o) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}

// -----

func.func @merge_c3_low(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %low: tensor<3x7xf32>, %o: tensor<8x16xf16>) {
  // expected-error@+1 {{expected dimension 1 of partial and partial_low to agree, got 8 and 7}}
  %r = attn.merge %p, %pl partial_low(%low : tensor<3x7xf32>) outs(%o) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}

// -----

func.func @merge_c5(%p: tensor<3x8x16xf32>, %pl: tensor<3x8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected lse and partial_low beside lse_low, got one of them at most}}
  %r:3 = attn.merge %p, %pl outs(%o, %lse, %lse) : tensor<3x8x16xf32>, tensor<3x8xf32>, tensor<8x16xf16>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>, tensor<8xf32>
  return
}
