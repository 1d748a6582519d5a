// What a search of sizes gives is refused where models say that it is not worth a trial. Its own choice the rule makes as ever.
// RUN: attn-opt %s --attn-set-schedule="target=cuda search=8192" | FileCheck %s --check-prefix=RULE
// RUN: attn-opt %s --attn-set-schedule="target=cuda search=8192 block-m=128 block-n=64" | FileCheck %s --check-prefix=KEPT
// RUN: not attn-opt %s --attn-set-schedule="target=cuda search=8192 block-m=192 block-n=96" 2>&1 | FileCheck %s --check-prefix=SPILLS
// RUN: not attn-opt %s --attn-set-schedule="target=cuda search=8192 block-m=64" 2>&1 | FileCheck %s --check-prefix=WAITS
// Few rows have no larger tiles to go to.
// RUN: attn-opt %s --attn-set-schedule="target=cuda search=64 block-m=64 block-n=64" | FileCheck %s --check-prefix=FEW
// What the machine does not have is another matter, and without a search everything else is given.
// RUN: not attn-opt %s --attn-set-schedule="target=cuda search=8192 block-m=100" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %s --attn-set-schedule="target=cuda block-m=192 block-n=96" | FileCheck %s --check-prefix=GIVEN
// RUN: attn-opt %s --attn-set-schedule="target=cpu search=8192 block-m=192 block-n=96" | FileCheck %s --check-prefix=GIVEN
// Elements of three parts take three times the memory.
// RUN: sed s/bf16/f32/g %s | attn-opt --attn-set-schedule="target=cuda search=8192" | FileCheck %s --check-prefix=WIDE
// RUN: sed s/bf16/f32/g %s | not attn-opt --attn-set-schedule="target=cuda search=8192 block-m=128 block-n=64" 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not attn-opt %s --attn-set-schedule="target=cuda search=-1" 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not attn-opt %s --attn-set-schedule="target=cuda search=2147483648" 2>&1 | FileCheck %s --check-prefix=MOST

// RULE: #attn.schedule<block_m = 192, block_n = 80,
// KEPT: #attn.schedule<block_m = 128, block_n = 64,
// SPILLS: error: 'attn.attention' op left out of the search: block_m 192 and block_n 96 take about 168 registers of the 160 of a thread on sm_90a
// WAITS: error: 'attn.attention' op left out of the search: block_m 64 reads 65536 bytes for each key, 4.0 times the fewest, and waits for them on sm_90a
// FEW: #attn.schedule<block_m = 64, block_n = 64,
// NONE: expected block_m in multiples of 64
// GIVEN: #attn.schedule<block_m = 192, block_n = 96
// WIDE: #attn.schedule<block_m = 128, block_n = 32,
// PARTS: expected at most 232448 bytes of shared memory in a block on sm_90a, got 295128 for block_m 128, block_n 64 and stages 2; the nearest is block_n 32, or stages 1
// LEAST: error: expected rows of a search from 0 to 2147483647, got -1
// MOST: error: expected rows of a search from 0 to 2147483647, got 2147483648
func.func @attention(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
