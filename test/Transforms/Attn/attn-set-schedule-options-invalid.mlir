// What options ask for is refused like a schedule by hand; what they leave open stays the rule's.
// RUN: not attn-opt %s --attn-set-schedule="target=cuda block-m=100" 2>&1 | FileCheck %s --check-prefix=M
// RUN: not attn-opt %s --attn-set-schedule="target=cuda block-n=20" 2>&1 | FileCheck %s --check-prefix=N
// RUN: not attn-opt %s --attn-set-schedule="target=cuda block-m=128 block-n=128 stages=4" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not attn-opt %s --attn-to-thread=block-m=512 2>&1 | FileCheck %s --check-prefix=PIPELINE

// M: error: 'attn.attention' op expected block_m in multiples of 64 up to 256 on sm_90a, got 100; the nearest is 128
// N: error: 'attn.attention' op expected block_n in multiples of 16 up to 256 with these head dimensions on sm_90a, got 20; the nearest is 32
// STAGES: error: 'attn.attention' op {{.*}} block_n 128 and stages 4; the nearest is block_n 96, or stages 3
// PIPELINE: error: 'attn.attention' op expected block_m in multiples of 64 up to 256 on sm_90a, got 512; the nearest is 256
func.func @f(%q: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
