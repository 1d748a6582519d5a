// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @state_c1(%acc: tensor<8x16xf32>, %max: tensor<7xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected M of acc and row_max to agree, got 8 and 7}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<7xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @normalize_c1(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<1x8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected output of rank 2 (M, Dv), got rank 3}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<1x8x16xf16>, tensor<8xf32> -> tensor<1x8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @normalize_c1_element(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xi8>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected output elements of type f16, bf16, f32 or f64, got 'i8'}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xi8>, tensor<8xf32> -> tensor<8x16xi8>, tensor<8xf32>
  return
}

// -----

func.func @normalize_c1_rows(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<9x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected M of acc and output to agree, got 8 and 9}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<9x16xf16>, tensor<8xf32> -> tensor<9x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @normalize_c1_columns(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x8xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected Dv of acc and output to agree, got 16 and 8}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf16>, tensor<8xf32> -> tensor<8x8xf16>, tensor<8xf32>
  return
}

// -----

func.func @normalize_c2(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8x1xf32>) {
  // expected-error@+1 {{expected lse of rank 1 (M), got rank 2}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8x1xf32> -> tensor<8x16xf16>, tensor<8x1xf32>
  return
}

// -----

func.func @normalize_c2_element(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf16>) {
  // expected-error@+1 {{expected lse elements of type f32, got 'f16'}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf16> -> tensor<8x16xf16>, tensor<8xf16>
  return
}

// -----

func.func @normalize_c2_rows(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xf16>, %lse: tensor<9xf32>) {
  // expected-error@+1 {{expected M of acc and lse to agree, got 8 and 9}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<9xf32> -> tensor<8x16xf16>, tensor<9xf32>
  return
}

// -----

func.func @destination_c1(%acc: memref<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) {
  // expected-error@+1 {{expected all operands to be tensors or all to be buffers, got 4 and 1}}
  %r:2 = attn.normalize %acc, %max, %sum outs(%o, %lse) : memref<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return
}

// -----

func.func @normalize_c2_low(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %o: tensor<8x16xf16>, %lse: tensor<8xf32>, %low: tensor<9xf32>) {
  // expected-error@+1 {{expected M of acc and lse_low to agree, got 8 and 9}}
  %r:3 = attn.normalize %acc, %max, %sum outs(%o, %lse, %low) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf32>, tensor<9xf32> -> tensor<8x16xf16>, tensor<8xf32>, tensor<9xf32>
  return
}

// -----

func.func @normalize_c3(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %s: tensor<7xf32>, %o: tensor<8x16xf16>) {
  // expected-error@+1 {{expected M of acc and sink to agree, got 8 and 7}}
  %r = attn.normalize %acc, %max, %sum sink(%s : tensor<7xf32>) outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}

// -----

func.func @normalize_c3_element(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %s: tensor<8xf16>, %o: tensor<8x16xf16>) {
  // expected-error@+1 {{expected sink elements of type f32, got 'f16'}}
  %r = attn.normalize %acc, %max, %sum sink(%s : tensor<8xf16>) outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}
