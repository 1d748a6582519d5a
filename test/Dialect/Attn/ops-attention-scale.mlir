// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @scale(
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: f32)
func.func @scale(%q: !t, %k: !t, %v: !t, %scale: f32) -> !t {
  // CHECK: attn.attention {{.*}} scale(%[[SCALE]]) :
  %o = attn.attention %q, %k, %v scale(%scale) : !t, !t, !t -> !t
  return %o : !t
}
