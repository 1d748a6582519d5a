// A schedule that was made for a CPU is no block of a GPU. (attn-set-schedule refuses what was made for a GPU.)
// RUN: not attn-opt %s --attn-to-online="target=cpu block-m=100" --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=M
// RUN: not attn-opt %s --attn-to-online="target=cpu block-m=64 block-n=20" --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=N

// M: error: 'attn.online_attention' op expected block_m in multiples of 64 up to 256 on sm_90a, got 100; the nearest is 128
// N: error: 'attn.online_attention' op expected block_n in multiples of 16 up to 256 with these head dimensions on sm_90a, got 20; the nearest is 32
func.func @f(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
