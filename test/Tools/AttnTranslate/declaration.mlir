// RUN: attn-translate %s --until=asm | FileCheck %s --check-prefix=ASM
// RUN: attn-run %s --device=cpu --shape B=1,H=1,M=5,N=5 --check | FileCheck %s --check-prefix=VERDICT

// A declaration beside the attention is nobody's business.
// ASM: attention:
// VERDICT: verdict   right
func.func private @elsewhere(tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>
func.func @attention(%q: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
