// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @state_c1(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected acc of rank 2 (M, Dv), got rank 1}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @state_c1_element(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf16>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected acc elements of type f32, got 'f16'}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf16>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @state_c1_max(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8x1xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected row_max of rank 1 (M), got rank 2}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8x1xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8x1xf32>, tensor<8xf32>
  return
}

// -----

func.func @state_c1_sum(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf64>) {
  // expected-error@+1 {{expected row_sum elements of type f32, got 'f64'}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf64> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf64>
  return
}

// -----

func.func @state_c1_rows(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<9xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected M of acc and row_max to agree, got 8 and 9}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<9xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<9xf32>, tensor<8xf32>
  return
}

// -----

func.func @state_c1_sum_rows(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<9xf32>) {
  // expected-error@+1 {{expected M of acc and row_sum to agree, got 8 and 9}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<9xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<9xf32>
  return
}

// -----

func.func @state_c2(%acc: tensor<8x0xf32>, %row: tensor<8xf32>, %o: tensor<8x0xf16>) {
  // expected-error@+1 {{expected Dv above 0 in acc, got 'tensor<8x0xf32>'}}
  %r = attn.normalize %acc, %row, %row outs(%o) : tensor<8x0xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x0xf16> -> tensor<8x0xf16>
  return
}
