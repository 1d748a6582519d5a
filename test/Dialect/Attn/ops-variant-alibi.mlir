// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @alibi(
func.func @alibi(%q: !t, %k: !t, %v: !t, %slopes: tensor<?xf16>) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.alibi<bottom_right>] captures(%{{.*}} : tensor<?xf16>) :
  %o = attn.attention %q, %k, %v variants [#attn.alibi<bottom_right>] captures(%slopes : tensor<?xf16>) : !t, !t, !t -> !t
  return %o : !t
}
