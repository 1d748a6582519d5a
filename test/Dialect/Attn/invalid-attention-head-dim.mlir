// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c3(%q: tensor<1x1x1x?xf32>, %k: tensor<1x1x1x16xf32>, %v: tensor<1x1x1x16xf32>) {
  // expected-error@+1 {{expected a static D above 0 in the last dimension of query, got ?}}
  %o = attn.attention %q, %k, %v : tensor<1x1x1x?xf32>, tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32> -> tensor<1x1x1x16xf32>
  return
}

// -----

func.func @attention_c3_zero(%q: tensor<1x1x1x0xf32>, %k: tensor<1x1x1x0xf32>, %v: tensor<1x1x1x16xf32>) {
  // expected-error@+1 {{expected a static D above 0 in the last dimension of query, got 0}}
  %o = attn.attention %q, %k, %v : tensor<1x1x1x0xf32>, tensor<1x1x1x0xf32>, tensor<1x1x1x16xf32> -> tensor<1x1x1x16xf32>
  return
}

// -----

func.func @attention_c3_value(%q: tensor<1x1x1x16xf32>, %k: tensor<1x1x1x16xf32>, %v: tensor<1x1x1x?xf32>) {
  // expected-error@+1 {{expected a static Dv above 0 in the last dimension of value, got ?}}
  %o = attn.attention %q, %k, %v : tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<1x1x1x?xf32> -> tensor<1x1x1x16xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<1x1x1x16xf32>, %k: tensor<1x1x1x32xf32>, %v: tensor<1x1x1x16xf32>) {
  // expected-error@+1 {{expected D of query and key to agree, got 16 and 32}}
  %o = attn.attention %q, %k, %v : tensor<1x1x1x16xf32>, tensor<1x1x1x32xf32>, tensor<1x1x1x16xf32> -> tensor<1x1x1x16xf32>
  return
}
