// One kernel at every length, for grouped heads and for both orders in memory.
// REQUIRES: cuda, sm_90
// RUN: attn-run %s --device=cuda --shape B=2,H=4,Hkv=4,M=128,N=128 --check | FileCheck %s
// RUN: attn-run %s --device=cuda --shape B=2,H=4,Hkv=2,M=129,N=127 --check | FileCheck %s
// RUN: attn-run %s --device=cuda --shape B=1,H=6,Hkv=1,M=7,N=333 --layout=bshd --check | FileCheck %s
// RUN: attn-run %s --device=cuda --shape B=1,H=1,M=1,N=1 --check | FileCheck %s
// RUN: attn-run %s --device=cuda --shape B=1,H=2,M=200,N=0 --check | FileCheck %s
// RUN: attn-run %s --device=cuda --shape B=0,H=2,M=200,N=10 --check | FileCheck %s

// CHECK: device {{ *}}cuda
// CHECK: verdict {{ *}}right
func.func @attention(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
    : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}
