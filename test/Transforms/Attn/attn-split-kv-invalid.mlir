// RUN: attn-opt %s --attn-split-kv --split-input-file --verify-diagnostics

func.func @level(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{does not belong to level 'online'}}
  %o = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
