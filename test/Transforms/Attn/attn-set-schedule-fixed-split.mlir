// RUN: attn-opt %s --attn-set-schedule="target=cuda fixed-split=4096" --remarks-filter=attn --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: attn-opt %s --attn-set-schedule="target=cuda fixed-split=480" --remarks-filter=attn --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: attn-opt %s --attn-set-schedule="fixed-split=4096 lanes=8" --remarks-filter=attn --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not attn-opt %s --attn-set-schedule="target=cuda fixed-split=100" 2>&1 | FileCheck %s --check-prefix=NEAREST
// RUN: not attn-opt %s --attn-set-schedule="target=cuda fixed-split=128 block-n=96" 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: not attn-opt %s --attn-set-schedule="target=cuda fixed-split=128 splits=2" 2>&1 | FileCheck %s --check-prefix=SPLITS

// Keys of a step divide a part: of what prompts and decoding would have, the most. Blocks go.
// CHECK: rule {{.*}} chose block_m {{.*}}, block_n 64, splits 1, stages 2, consumers 2, parts of 4096 keys"
// OTHER: block_n 80, splits 1, stages 2, consumers 2, parts of 480 keys"
// CPU: rule cpu-8-lanes chose block_m 48, block_n 64, splits 1, parts of 4096 keys"
// NEAREST: error: 'attn.attention' op expected a fixed_split of whole tiles of 16 keys, got 100; the nearest is 96
// SAID: error: 'attn.attention' op expected a fixed_split of whole tiles of 96 keys, got 128; the nearest is 96
// SPLITS: error: 'attn.attention' op expected a fixed_split without splits, fill, balance and lists, got 2 splits
func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
