// Calls choose the kernel that they take from the list of the rule, by their extents.
// RUN: attn-run %s --device=sim --shape B=1,H=32,Hkv=8,M=1,N=8192 --predict | FileCheck %s --check-prefix=PARTS
// RUN: attn-run %s --device=sim --shape B=16,H=32,Hkv=8,M=1,N=512 --predict | FileCheck %s --check-prefix=WHOLE
// RUN: attn-run %s --device=sim --shape B=1,H=2,M=128,N=2049 --check --sim-seeds=2 | FileCheck %s --check-prefixes=FEW,RIGHT
// RUN: attn-run %s --device=sim --shape B=1,H=2,M=257,N=77 --check --sim-seeds=2 | FileCheck %s --check-prefixes=NARROW,RIGHT
// RUN: attn-run %s --device=sim --shape B=1,H=2,M=257,N=154 --check --sim-seeds=2 | FileCheck %s --check-prefixes=NARROW,RIGHT

// PARTS: schedule  @attention_packed4_split: {{.*}}; @attention_packed4_merge:
// WHOLE: schedule  producer {{.*}} consumer 1 x 216
// FEW:   schedule  producer {{.*}} consumer 2 x
// NARROW: schedule producer {{.*}} consumer 3 x
// RIGHT: verdict   right
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
