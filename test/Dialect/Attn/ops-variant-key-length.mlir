// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @key_length(
func.func @key_length(%q: !t, %k: !t, %v: !t, %lengths: tensor<?xi32>) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.key_length] captures(%{{.*}} : tensor<?xi32>) :
  %o = attn.attention %q, %k, %v variants [#attn.key_length] captures(%lengths : tensor<?xi32>) : !t, !t, !t -> !t
  return %o : !t
}
