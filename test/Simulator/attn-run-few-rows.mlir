// Few rows are as short as few keys where tiles of the long way have more rows: two consumers, or three.
// RUN: attn-run %s --device=sim --shape B=1,H=2,M=128,N=2049 --check --sim-seeds=2 | FileCheck %s --check-prefixes=SHORT,RIGHT
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=1,N=2100 --check --sim-seeds=2 | FileCheck %s --check-prefixes=PACKED,RIGHT
// RUN: attn-run %s --device=sim --way=lengths --shape B=1,H=1,M=1,N=2100 --check --sim-seeds=2 | FileCheck %s --check-prefixes=SHORT,RIGHT
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=129,N=2048 --check --sim-seeds=2 | FileCheck %s --check-prefixes=SHORT,RIGHT
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=129,N=2049 --check --sim-seeds=2 | FileCheck %s --check-prefixes=LONG,RIGHT
// RUN: attn-run %s --device=sim --shape B=8,H=16,M=128,N=16384 --predict | FileCheck %s --check-prefix=SHORT

// Or tiles of fewer keys, for who says that rows are few: of all calls.
// RUN: attn-run %s --device=sim --way=few --shape B=1,H=2,M=127,N=2049 --check --sim-seeds=2 | FileCheck %s --check-prefixes=SHORT,RIGHT
// RUN: attn-run %s --device=sim --way=few --shape B=1,H=1,M=129,N=1 --check --sim-seeds=2 | FileCheck %s --check-prefixes=SHORT,RIGHT
// RUN: attn-run %s --device=sim --way=few --shape B=1,H=1,M=7,N=0 --check | FileCheck %s --check-prefixes=SHORT,RIGHT

// Or narrow ones, for who says that keys are few.
// RUN: attn-run %s --device=sim --way=narrow --shape B=1,H=2,M=385,N=77 --check --sim-seeds=2 | FileCheck %s --check-prefixes=LONG,RIGHT
// RUN: attn-run %s --device=sim --way=narrow --shape B=2,H=1,M=193,N=154 --check --sim-seeds=2 | FileCheck %s --check-prefixes=LONG,RIGHT
// RUN: attn-run %s --device=sim --way=narrow --shape B=1,H=1,M=7,N=0 --check | FileCheck %s --check-prefixes=LONG,RIGHT

// A step of decoding packs rows, whoever asks.
// PACKED: schedule  @attention_packed2_split:
// SHORT: schedule  producer {{.*}} consumer 2 x
// LONG: schedule  producer {{.*}} consumer 3 x
// RIGHT: verdict   right
func.func @attention(%q: tensor<?x?x?x96xbf16>, %k: tensor<?x?x?x96xbf16>, %v: tensor<?x?x?x96xbf16>)
    -> tensor<?x?x?x96xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x96xbf16>
  return %o : tensor<?x?x?x96xbf16>
}
