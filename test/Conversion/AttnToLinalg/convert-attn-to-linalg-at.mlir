// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// Positions are global: the index of a loop plus `at`.
// CHECK-LABEL: func @at(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index)
func.func @at(%q: !t, %k: !t, %v: !t, %zero: index, %m0: index) -> !t {
  // CHECK: linalg.generic
  // CHECK: linalg.generic
  // CHECK: %[[I:.*]] = linalg.index 2
  // CHECK: %[[M:.*]] = arith.addi %[[I]], %[[M0]]
  // CHECK: arith.cmpi sle, %{{.*}}, %[[M]]
  %o = attn.attention %q, %k, %v at(%zero, %zero, %m0, %zero)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
