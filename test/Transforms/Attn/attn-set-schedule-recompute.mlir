// Blocks of GPUs recompute where options say so.
// RUN: attn-opt %s --attn-set-schedule="target=cuda stay=true recompute=true" | FileCheck %s --check-prefix=ON
// RUN: attn-opt %s --attn-set-schedule="target=cuda stay=true" | FileCheck %s --check-prefix=OFF
// RUN: attn-opt %s --attn-set-schedule="target=cpu recompute=true" | FileCheck %s --check-prefix=OFF

// ON: schedule<block_m = 128, block_n = 80, stages = 2, consumers = 2, stay = true, slack = 0, recompute = true>
// OFF-NOT: recompute
func.func @f(%q: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}
