// RUN: attn-opt %s --attn-expand-variants --split-input-file --verify-diagnostics

func.func @room(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+2 {{attn-expand-variants: expected room 1 'problem', got room 3 'online'}}
  // expected-note@+1 {{expected attn.attention, got a part of the online softmax}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}
