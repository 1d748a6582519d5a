// RUN: attn-opt %s --attn-set-schedule=splits=0 --split-input-file --verify-diagnostics

func.func @attention(%q: tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32> {
  // expected-error@below {{expected block_m, block_n, splits, stages and consumers from 1 to 2^30, got 64, 64, 0, 1 and 1}}
  %o = attn.attention %q, %q, %q : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return %o : tensor<2x4x3x16xf32>
}
