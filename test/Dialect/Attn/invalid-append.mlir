// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @rows_c1(%n: tensor<9x2x64xf32>, %s: tensor<9x1xi32>, %p: tensor<3x4x2x64xf32>) {
  // expected-error@+1 {{expected slots of rank 1 (T), got rank 2}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<9x1xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}

// -----

func.func @rows_c1_elements(%n: tensor<9x2x64xf32>, %s: tensor<9xf32>, %p: tensor<3x4x2x64xf32>) {
  // expected-error@+1 {{expected slots elements of type i32 or i64, got 'f32'}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<9xf32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}

// -----

func.func @rows_c1_count(%n: tensor<9x2x64xf32>, %s: tensor<8xi32>, %p: tensor<3x4x2x64xf32>) {
  // expected-error@+1 {{expected T of source and slots to agree, got 9 and 8}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<8xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}

// -----

func.func @rows_c1_positions(%n: tensor<9x2x64xf32>, %a: tensor<9xi8>, %c: tensor<5x16xf32>, %i: tensor<5x16xf32>, %o: tensor<9x2x64xf32>) {
  // expected-error@+1 {{expected positions elements of type i32 or i64, got 'i8'}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi8>, tensor<5x16xf32>, tensor<5x16xf32>, tensor<9x2x64xf32> -> tensor<9x2x64xf32>
  return
}

// -----

func.func @rows_c2(%n: tensor<9x64xf32>, %s: tensor<9xi32>, %p: tensor<3x4x2x64xf32>) {
  // expected-error@+1 {{expected source of rank 3 (T, H, D), got rank 2}}
  %r = attn.append %n[%s] into %p : tensor<9x64xf32>, tensor<9xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}

// -----

func.func @rows_c2_elements(%n: tensor<9x2x64xi32>, %s: tensor<9xi32>, %p: tensor<3x4x2x64xi32>) {
  // expected-error@+1 {{expected source elements of type f16, bf16 or f32, got 'i32'}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xi32>, tensor<9xi32>, tensor<3x4x2x64xi32> -> tensor<3x4x2x64xi32>
  return
}

// -----

func.func @rows_c2_columns(%n: tensor<9x2x?xf32>, %s: tensor<9xi32>, %p: tensor<3x4x2x64xf32>) {
  // expected-error@+1 {{expected a static D above 0, got 'tensor<9x2x?xf32>'}}
  %r = attn.append %n[%s] into %p : tensor<9x2x?xf32>, tensor<9xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}

// -----

func.func @rows_c3(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<16xf32>, %i: tensor<16xf32>, %o: tensor<9x2x64xf32>) {
  // expected-error@+1 {{expected cos of rank 2 (L, R / 2), got rank 1}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<16xf32>, tensor<16xf32>, tensor<9x2x64xf32> -> tensor<9x2x64xf32>
  return
}

// -----

func.func @rows_c3_elements(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x16xf64>, %i: tensor<5x16xf64>, %o: tensor<9x2x64xf32>) {
  // expected-error@+1 {{expected cos elements of type f16, bf16 or f32, got 'f64'}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<5x16xf64>, tensor<5x16xf64>, tensor<9x2x64xf32> -> tensor<9x2x64xf32>
  return
}

// -----

func.func @rows_c3_sin(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x16xf32>, %i: tensor<5x8xf32>, %o: tensor<9x2x64xf32>) {
  // expected-error@+1 {{expected sin to have the type of cos, got 'tensor<5x8xf32>' and 'tensor<5x16xf32>'}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<5x16xf32>, tensor<5x8xf32>, tensor<9x2x64xf32> -> tensor<9x2x64xf32>
  return
}

// -----

func.func @rows_c3_columns(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x33xf32>, %i: tensor<5x33xf32>, %o: tensor<9x2x64xf32>) {
  // expected-error@+1 {{expected 1 to 32 columns of cos, half of D at most, got 'tensor<5x33xf32>'}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<5x33xf32>, tensor<5x33xf32>, tensor<9x2x64xf32> -> tensor<9x2x64xf32>
  return
}

// -----

func.func @rows_c3_dynamic(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x?xf32>, %i: tensor<5x?xf32>, %o: tensor<9x2x64xf32>) {
  // expected-error@+1 {{expected 1 to 32 columns of cos, half of D at most, got 'tensor<5x?xf32>'}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<5x?xf32>, tensor<5x?xf32>, tensor<9x2x64xf32> -> tensor<9x2x64xf32>
  return
}

// -----

func.func @rotary_c1(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x16xf32>, %i: tensor<5x16xf32>, %o: tensor<9x2x64xf16>) {
  // expected-error@+1 {{expected source and output of one element type and D, got 'tensor<9x2x64xf32>' and 'tensor<9x2x64xf16>'}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<5x16xf32>, tensor<5x16xf32>, tensor<9x2x64xf16> -> tensor<9x2x64xf16>
  return
}

// -----

func.func @rotary_c1_heads(%n: tensor<9x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x16xf32>, %i: tensor<5x16xf32>, %o: tensor<9x3x64xf32>) {
  // expected-error@+1 {{expected H of source and output to agree, got 2 and 3}}
  %r = attn.rotary %n at %a by %c, %i outs(%o) : tensor<9x2x64xf32>, tensor<9xi32>, tensor<5x16xf32>, tensor<5x16xf32>, tensor<9x3x64xf32> -> tensor<9x3x64xf32>
  return
}

// -----

func.func @append_c1(%n: tensor<9x2x64xf32>, %s: tensor<9xi32>, %p: tensor<12x2x64xf32>) {
  // expected-error@+1 {{expected dest of rank 4 (Np, P, Hkv, D), got rank 3}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<9xi32>, tensor<12x2x64xf32> -> tensor<12x2x64xf32>
  return
}

// -----

func.func @append_c1_heads(%n: tensor<9x2x64xf32>, %s: tensor<9xi32>, %p: tensor<3x4x3x64xf32>) {
  // expected-error@+1 {{expected Hkv of source and dest to agree, got 2 and 3}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x3x64xf32> -> tensor<3x4x3x64xf32>
  return
}

// -----

func.func @append_c1_elements(%n: tensor<9x2x64xf32>, %s: tensor<9xi32>, %p: tensor<3x4x2x64xbf16>) {
  // expected-error@+1 {{expected source and dest of one element type, got 'tensor<9x2x64xf32>' and 'tensor<3x4x2x64xbf16>'}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x2x64xbf16> -> tensor<3x4x2x64xbf16>
  return
}

// -----

func.func @append_c1_columns(%n: tensor<9x2x64xf32>, %s: tensor<9xi32>, %p: tensor<3x4x2x?xf32>) {
  // expected-error@+1 {{expected a static D of dest, got 'tensor<3x4x2x?xf32>'}}
  %r = attn.append %n[%s] into %p : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x2x?xf32> -> tensor<3x4x2x?xf32>
  return
}

// -----

func.func @append_c2(%n: tensor<9x2x64xf32>, %s: tensor<9xi32>, %p: tensor<3x4x2x64xf32>) {
  // expected-error@+1 {{expected positions, cos and sin together, got some of them}}
  %r = attn.append %n[%s] interleaved into %p : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}

// -----

func.func @append_c2_tables(%n: tensor<9x2x64xf32>, %s: tensor<9xi32>, %p: tensor<3x4x2x64xf32>, %a: tensor<9xi32>, %c: tensor<5x40xf32>, %i: tensor<5x40xf32>) {
  // expected-error@+1 {{expected 1 to 32 columns of cos, half of D at most, got 'tensor<5x40xf32>'}}
  %r = attn.append %n[%s] rotary(%a, %c, %i : tensor<9xi32>, tensor<5x40xf32>, tensor<5x40xf32>) into %p : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return
}
