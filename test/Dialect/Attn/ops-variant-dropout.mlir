// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>

// CHECK-LABEL: func @dropout(
func.func @dropout(%q: !t, %k: !t, %v: !t, %seed: tensor<1xi64>) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.dropout<1.000000e-01 : f64>] captures(%{{.*}} : tensor<1xi64>) :
  %o = attn.attention %q, %k, %v variants [#attn.dropout<0.1>] captures(%seed : tensor<1xi64>) : !t, !t, !t -> !t
  return %o : !t
}
