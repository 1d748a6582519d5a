// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>


// CHECK-LABEL: func @none(
func.func @none(%q: !t) -> !t {
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} :
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  return %o : !t
}
