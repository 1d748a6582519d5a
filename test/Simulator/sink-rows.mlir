// A sink for each row, whole and in parts, on every device; and sinks of heads that are packed, of groups that leave slots.
// RUN: attn-run %s --device=interpreter --shape B=2,H=4,Hkv=2,M=37,N=70 --check | FileCheck %s
// RUN: attn-run %s --device=cpu --shape B=2,H=4,Hkv=2,M=37,N=70 --check | FileCheck %s
// RUN: attn-run %s --device=cpu --shape B=2,H=4,Hkv=2,M=37,N=70 --splits=3 --check | FileCheck %s
// RUN: attn-run %s --device=sim --shape B=2,H=4,Hkv=2,M=137,N=270 --check --sim-seeds=2 | FileCheck %s
// RUN: attn-run %s --device=sim --shape B=2,H=4,Hkv=2,M=137,N=270 --splits=3 --check --sim-seeds=2 | FileCheck %s
// RUN: sed 's/sinks : tensor<?x?xf32>)/sinks : tensor<?xf32>) {attn.pack = 8}/; s/sinks: tensor<?x?xf32>/sinks: tensor<?xf32>/' %s | attn-run - --device=sim --shape B=2,H=6,Hkv=1,M=3,N=270 --check --sim-seeds=2 | FileCheck %s
// RUN: sed 's/sinks : tensor<?x?xf32>)/sinks : tensor<?xf32>) {attn.pack = 8}/; s/sinks: tensor<?x?xf32>/sinks: tensor<?xf32>/' %s | attn-run - --device=sim --shape B=1,H=10,Hkv=2,M=2,N=3000 --check --sim-seeds=2 | FileCheck %s

// CHECK: verdict   right
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %sinks: tensor<?x?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v sink(%sinks : tensor<?x?xf32>)
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}
