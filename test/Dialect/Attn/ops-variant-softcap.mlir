// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @softcap(
func.func @softcap(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.softcap<3.000000e+01 : f32>] :
  %o = attn.attention %q, %k, %v variants [#attn.softcap<3.000000e+01 : f32>] : !t, !t, !t -> !t
  return %o : !t
}
