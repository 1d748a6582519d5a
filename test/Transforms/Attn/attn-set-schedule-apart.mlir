// RUN: attn-opt %s --attn-set-schedule="target=cuda apart=true" | FileCheck %s
// RUN: attn-opt %s --attn-set-schedule="target=cuda" | FileCheck %s --check-prefix=TOGETHER
// RUN: attn-opt %s --attn-set-schedule="target=cuda block-m=64 apart=true" | FileCheck %s --check-prefix=TOGETHER
// RUN: attn-opt %s --attn-set-schedule="target=cpu apart=true" | FileCheck %s --check-prefix=TOGETHER

// Consumers begin apart where there are several, on a GPU.
// CHECK: consumers = 2, {{.*}}apart = true
// TOGETHER-NOT: apart
func.func @wide(%q: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  %o = attn.attention %q, %q, %q variants [#attn.causal<bottom_right>] : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}
