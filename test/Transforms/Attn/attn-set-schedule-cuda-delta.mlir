// RUN: attn-opt %s --attn-set-schedule="target=cuda" | FileCheck %s

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// A pass of gradients by itself has its registers counted, too.
// CHECK-LABEL: func.func @delta
// CHECK:         attn.attention_grad_delta {{.*}}attn.schedule = #attn.schedule<
func.func @delta(%q: !x, %k: !x, %v: !x, %do: !x, %n: !r, %d: !r) -> !r {
  %o = attn.attention_grad_delta %q, %k, %v, %do, %n, %d : !x, !x, !x, !x, !r, !r -> !r
  return %o : !r
}
