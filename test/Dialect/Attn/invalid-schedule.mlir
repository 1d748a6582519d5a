// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @schedule_c2(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.schedule' to be a #attn.schedule, got "fast"}}
  %o = attn.attention %q, %q, %q {attn.schedule = "fast"} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @short_c1(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.short' to be a unit, got true}}
  %o = attn.attention %q, %q, %q {attn.short = true} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @short_c1_long(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.long' to be a unit, got 4096 : i64}}
  %o = attn.attention %q, %q, %q {attn.long = 4096} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @short_c1_few(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.few' to be a unit, got 128 : i64}}
  %o = attn.attention %q, %q, %q {attn.few = 128} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @short_c1_narrow(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.narrow' to be a unit, got 80 : i64}}
  %o = attn.attention %q, %q, %q {attn.narrow = 80} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @kept_keys_c1(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected 'attn.kept_keys' to be "slice", "prefix" or "diagonal", got "all"}}
  %o = attn.attention %q, %q, %q {attn.kept_keys = "all"} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
