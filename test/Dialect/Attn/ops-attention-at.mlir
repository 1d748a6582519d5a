// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @at(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index)
func.func @at(%q: !t, %k: !t, %v: !t, %m0: index) -> !t {
  // CHECK: %[[ZERO:.*]] = arith.constant 0
  // CHECK: attn.attention {{.*}} at(%[[ZERO]], %[[ZERO]], %[[M0]], %[[ZERO]]) :
  %zero = arith.constant 0 : index
  %o = attn.attention %q, %k, %v at(%zero, %zero, %m0, %zero) : !t, !t, !t -> !t
  return %o : !t
}
