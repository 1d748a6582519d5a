// RUN: not attn-opt %s --attn-verify-room=room=grid --attn-online-softmax 2>&1 | FileCheck %s

// A pass that fails is the last one that runs, and nothing is printed.
// CHECK: in room 2 'grid'
// CHECK-NOT: error:
// CHECK-NOT: func.func
func.func @whole(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  %o = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}
