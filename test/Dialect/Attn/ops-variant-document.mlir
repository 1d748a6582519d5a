// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @document(
func.func @document(%q: !t, %k: !t, %v: !t, %iq: tensor<?x?xi32>, %ik: tensor<?x?xi64>) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.document] captures(%{{.*}} : tensor<?x?xi32>, tensor<?x?xi64>) :
  %o = attn.attention %q, %k, %v variants [#attn.document] captures(%iq, %ik : tensor<?x?xi32>, tensor<?x?xi64>) : !t, !t, !t -> !t
  return %o : !t
}
