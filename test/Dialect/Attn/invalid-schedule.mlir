// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @schedule_c2(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.schedule' to be a #attn.schedule, got "fast"}}
  %o = attn.attention %q, %q, %q {attn.schedule = "fast"} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @kept_keys_c1(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.kept_keys' to be "slice", "prefix" or "diagonal", got "all"}}
  %o = attn.attention %q, %q, %q {attn.kept_keys = "all"} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
