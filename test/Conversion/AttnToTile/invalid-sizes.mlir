// What the tensor cores cannot do is said before the first tile is made, with the nearest that they can.
// RUN: not attn-opt %s --attn-to-online="target=cuda block-m=100" --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=M
// RUN: not attn-opt %s --attn-to-online="target=cuda block-m=512" --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=M512
// RUN: not attn-opt %s --attn-to-online="target=cuda block-n=20" --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=N
// RUN: sed s/128x/16x/g %s | not attn-opt --attn-to-online="target=cuda block-n=112" --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: sed s/128x/33x/g %s | not attn-opt --attn-to-online=target=cuda --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=D
// RUN: sed s/128x/264x/g %s | not attn-opt --attn-to-online=target=cuda --convert-attn-to-tile 2>&1 | FileCheck %s --check-prefix=D264

// M: error: 'attn.online_attention' op expected block_m in multiples of 64 up to 256 on this target, got 100; the nearest is 128
// M512: error: {{.*}} got 512; the nearest is 256
// N: error: {{.*}} expected block_n in multiples of 16 up to 256 with these head dimensions on this target, got 20; the nearest is 32
// SHORT: error: {{.*}} expected block_n in multiples of 32 up to 256 with these head dimensions on this target, got 112; the nearest is 128
// D: error: {{.*}} expected head dimensions in multiples of 8 up to 256 on this target, got 33; the nearest is 40
// D264: error: {{.*}} got 264; the nearest is 256
func.func @f(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
