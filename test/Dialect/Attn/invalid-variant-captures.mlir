// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c16(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 1 captures for these variants, got 0}}
  %o = attn.attention %q, %q, %q variants [#attn.key_length] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_more(%q: tensor<2x4x3x16xf32>, %l: tensor<2xi32>) {
  // expected-error@+1 {{expected 0 captures for these variants, got 1}}
  %o = attn.attention %q, %q, %q variants [#attn.causal<top_left>] captures(%l : tensor<2xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_alone(%q: tensor<2x4x3x16xf32>, %l: tensor<2xi32>) {
  // expected-error@+1 {{expected 0 captures for these variants, got 1}}
  %o = attn.attention %q, %q, %q captures(%l : tensor<2xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_rank(%q: tensor<2x4x3x16xf32>, %l: tensor<2x1xi32>) {
  // expected-error@+1 {{expected key lengths (B) of rank 1 and signless integer or index elements, got 'tensor<2x1xi32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.key_length] captures(%l : tensor<2x1xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_float(%q: tensor<2x4x3x16xf32>, %l: tensor<2x3xf32>) {
  // expected-error@+1 {{expected query ids (B, M) of rank 2 and signless integer or index elements, got 'tensor<2x3xf32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.document] captures(%l, %l : tensor<2x3xf32>, tensor<2x3xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_unsigned(%q: tensor<2x4x3x16xf32>, %l: tensor<2xui32>) {
  // expected-error@+1 {{expected key lengths (B) of rank 1 and signless integer or index elements, got 'tensor<2xui32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.key_length] captures(%l : tensor<2xui32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_slopes(%q: tensor<2x4x3x16xf32>, %l: tensor<4xi32>) {
  // expected-error@+1 {{expected slopes (H) of rank 1 and float elements, got 'tensor<4xi32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.alibi<top_left>] captures(%l : tensor<4xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_seed(%q: tensor<2x4x3x16xf32>, %l: tensor<1xf32>) {
  // expected-error@+1 {{expected seed (1) of rank 1 and signless integer or index elements, got 'tensor<1xf32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.dropout<0.1>] captures(%l : tensor<1xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_positions(%q: tensor<2x4x3x16xf32>, %first: tensor<1xi32>) {
  // expected-error@+1 {{expected 2 captures for these variants, got 1}}
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, origin, own>] captures(%first : tensor<1xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c16_positions_float(%q: tensor<2x4x3x16xf32>, %rows: tensor<3xf32>, %total: tensor<2xi32>) {
  // expected-error@+1 {{expected positions of rows (M) of rank 1 and signless integer or index elements, got 'tensor<3xf32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, own>] captures(%rows, %total : tensor<3xf32>, tensor<2xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
