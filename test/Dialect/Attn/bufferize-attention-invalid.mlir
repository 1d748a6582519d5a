// RUN: attn-opt %s --one-shot-bufferize --verify-diagnostics

// attention is a whole-tensor op: it becomes online attention before there are buffers.
func.func @attention(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+1 {{op was not bufferized}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
