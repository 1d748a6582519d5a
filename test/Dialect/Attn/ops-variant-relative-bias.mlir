// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @relative_bias(
func.func @relative_bias(%q: !t, %k: !t, %v: !t, %bias: tensor<?x31xf32>) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.relative_bias<15, top_left>] captures(%{{.*}} : tensor<?x31xf32>) :
  %o = attn.attention %q, %k, %v variants [#attn.relative_bias<15, top_left>] captures(%bias : tensor<?x31xf32>) : !t, !t, !t -> !t
  return %o : !t
}
