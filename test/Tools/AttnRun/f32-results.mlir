// Elements of 16 bits whose output is f32, on a CPU and on GPUs, with what is stored compared with the definition.
// RUN: attn-run %s --check --shape=B=1,H=2,Hkv=1,M=130,N=150 | FileCheck %s
// RUN: attn-run %s --check --shape=B=1,H=2,Hkv=1,M=130,N=150 --device=sim | FileCheck %s
// RUN: attn-run %s --check --shape=B=1,H=2,Hkv=1,M=130,N=150 --device=sim --target=sm_80 | FileCheck %s
// CHECK: o {{ *}}1x2x130x64 f32  max relative
// CHECK: verdict   right

!x = tensor<?x?x?x64xbf16>
!w = tensor<?x?x?x64xf32>
func.func @attention(%q: !x, %k: !x, %v: !x) -> (!w, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>] : !x, !x, !x -> !w, tensor<?x?x?xf32>
  return %o, %lse : !w, tensor<?x?x?xf32>
}
