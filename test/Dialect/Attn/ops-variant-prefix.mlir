// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @prefix(
func.func @prefix(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.prefix<32, bottom_right>] :
  %o = attn.attention %q, %k, %v variants [#attn.prefix<32, bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}
