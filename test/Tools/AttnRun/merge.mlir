// RUN: attn-run %s --shape p.0=3,p.1=2,p.2=5,p.3=33 --check | FileCheck %s
// RUN: attn-run %s --shape p.0=3,p.1=2,p.2=5,p.3=33 --device=interpreter --check | FileCheck %s
// RUN: attn-run %s --shape p.0=37,p.1=1,p.2=2,p.3=9 --device=sim --check | FileCheck %s
// RUN: attn-run %s --shape p.0=2,p.1=2,p.2=1,p.3=19 --device=sim --target=sm_80 --check | FileCheck %s
// RUN: attn-run %s --shape p.0=0,p.1=2,p.2=5,p.3=9 --device=sim --check | FileCheck %s

// Partial results, with both parts of their logarithms: no part at all gives 0 and -inf.
// CHECK: r {{.*}}x64 bf16  max relative
// CHECK: verdict right
func.func @merge(%p: tensor<?x?x?x?x64xbf16>, %l: tensor<?x?x?x?xf32>, %low: tensor<?x?x?x?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %b = tensor.dim %p, %c1 : tensor<?x?x?x?x64xbf16>
  %h = tensor.dim %p, %c2 : tensor<?x?x?x?x64xbf16>
  %m = tensor.dim %p, %c3 : tensor<?x?x?x?x64xbf16>
  %o = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xbf16>
  %e = tensor.empty(%b, %h, %m) : tensor<?x?x?xf32>
  %r:2 = attn.merge %p, %l partial_low(%low : tensor<?x?x?x?xf32>) outs(%o, %e) : tensor<?x?x?x?x64xbf16>, tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16>, tensor<?x?x?xf32> -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
  return %r#0, %r#1 : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}
