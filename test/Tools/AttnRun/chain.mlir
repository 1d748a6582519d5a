// An attention on another one's output, which a type rounds in between, on every device that needs no GPU.
// RUN: attn-run %s --entry=bf16 --device=cpu --shape B=2,H=2,M=70,N=33 --check | FileCheck %s
// RUN: attn-run %s --entry=f16 --device=cpu --shape B=2,H=2,M=70,N=33 --check | FileCheck %s
// RUN: attn-run %s --entry=bf16 --device=sim --shape B=2,H=2,M=70,N=33 --check | FileCheck %s
// RUN: attn-run %s --entry=f16 --device=sim --shape B=2,H=2,M=70,N=33 --check | FileCheck %s

// CHECK: verdict {{ *}}right
!bf16 = tensor<?x?x?x64xbf16>
!f16 = tensor<?x?x?x64xf16>
func.func @bf16(%q: !bf16, %k: !bf16, %v: !bf16) -> !bf16 {
  %o = attn.attention %q, %k, %v : !bf16, !bf16, !bf16 -> !bf16
  %p = attn.attention %o, %k, %v variants [#attn.causal<top_left>] : !bf16, !bf16, !bf16 -> !bf16
  return %p : !bf16
}
func.func @f16(%q: !f16, %k: !f16, %v: !f16) -> !f16 {
  %o = attn.attention %q, %k, %v : !f16, !f16, !f16 -> !f16
  %p = attn.attention %o, %k, %v variants [#attn.causal<top_left>] : !f16, !f16, !f16 -> !f16
  return %p : !f16
}
