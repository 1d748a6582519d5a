// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c17(%q: tensor<2x4x3x16xf32>, %l: tensor<3xi32>) {
  // expected-error@+1 {{expected B of the op and key lengths (B) to agree, got 2 and 3}}
  %o = attn.attention %q, %q, %q variants [#attn.key_length] captures(%l : tensor<3xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c17_rows(%q: tensor<2x4x3x16xf32>, %l: tensor<2x4xi32>) {
  // expected-error@+1 {{expected M of the op and query ids (B, M) to agree, got 3 and 4}}
  %o = attn.attention %q, %q, %q variants [#attn.document] captures(%l, %l : tensor<2x4xi32>, tensor<2x4xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c17_keys(%q: tensor<2x4x3x16xf32>, %l: tensor<2x3xi32>, %k: tensor<2x4xi32>) {
  // expected-error@+1 {{expected N of the op and key ids (B, N) to agree, got 3 and 4}}
  %o = attn.attention %q, %q, %q variants [#attn.document] captures(%l, %k : tensor<2x3xi32>, tensor<2x4xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c17_heads(%q: tensor<2x4x3x16xf32>, %l: tensor<2x9xf32>) {
  // expected-error@+1 {{expected H of the op and bias (H, R) to agree, got 4 and 2}}
  %o = attn.attention %q, %q, %q variants [#attn.relative_bias<0, top_left>] captures(%l : tensor<2x9xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c18(%q: tensor<2x4x3x16xf32>, %l: tensor<4x0xf32>) {
  // expected-error@+1 {{expected R above 0 in bias (H, R), got 'tensor<4x0xf32>'}}
  %o = attn.attention %q, %q, %q variants [#attn.relative_bias<0, top_left>] captures(%l : tensor<4x0xf32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c17_seed(%q: tensor<2x4x3x16xf32>, %l: tensor<2xi64>) {
  // expected-error@+1 {{expected 1 of the op and seed (1) to agree, got 1 and 2}}
  %o = attn.attention %q, %q, %q variants [#attn.dropout<0.1>] captures(%l : tensor<2xi64>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c17_positions(%q: tensor<2x4x3x16xf32>, %rows: tensor<4xi32>, %total: tensor<2xi32>) {
  // expected-error@+1 {{expected M of the op and positions of rows (M) to agree, got 3 and 4}}
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, own>] captures(%rows, %total : tensor<4xi32>, tensor<2xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c17_total(%q: tensor<2x4x3x16xf32>, %total: tensor<3xi32>) {
  // expected-error@+1 {{expected 2 of the op and total (2) to agree, got 2 and 3}}
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, own, own>] captures(%total : tensor<3xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

// Ids are of the whole where positions are, and of the op where they are its own.
func.func @attention_c17_whole(%q: tensor<2x4x3x16xf32>, %rows: tensor<3xi32>, %total: tensor<2xi32>, %l: tensor<2x9xi32>, %k: tensor<2x8xi32>) {
  // expected-error@+1 {{expected N of the op and key ids (B, N) to agree, got 3 and 8}}
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, own>, #attn.document] captures(%rows, %total, %l, %k : tensor<3xi32>, tensor<2xi32>, tensor<2x9xi32>, tensor<2x8xi32>) : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
