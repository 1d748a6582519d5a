// Dropout and a captured tensor that is trained, on both ways: the factor goes into what is added too.
// RUN: attn-run %s --grad --device=sim --shape B=2,H=2,M=70,bias.0=2,bias.1=139 --check --sim-seeds=1 | FileCheck %s
// RUN: attn-run %s --grad --device=cpu --shape B=2,H=2,M=70,bias.0=2,bias.1=139 --check | FileCheck %s

// CHECK: d_wrt 2x139 f32
// CHECK: verdict right
!t = tensor<?x?x?x64xbf16>
func.func @attention(%q: !t, %k: !t, %v: !t, %bias: tensor<?x?xf32>, %seed: tensor<1xi64>) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.relative_bias<0, bottom_right>, #attn.dropout<0.25 : f32>]
      captures(%bias, %seed : tensor<?x?xf32>, tensor<1xi64>) : !t, !t, !t -> !t
  return %o : !t
}
