// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>
!row = tensor<?x?x?xf32>

// s15: the factor multiplies the weight behind its sum.
// CHECK-LABEL: func @factor(
// CHECK-SAME: %[[FACTORS:[a-z0-9]+]]: tensor<?x?xf32>)
func.func @factor(%q: !t, %k: !t, %v: !t, %factors: tensor<?x?xf32>) -> !t {
  // CHECK: math.exp
  // CHECK: linalg.generic {{.*}} "reduction"]} ins(%[[P:[0-9]+]] :
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.addf
  // CHECK: %[[F:.*]] = linalg.generic
  // CHECK: tensor.extract %[[FACTORS]]
  // CHECK: %[[PF:.*]] = linalg.generic {{.*}} ins(%[[F]] : {{.*}}) outs(%[[P]] :
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.mulf
  // CHECK: linalg.generic {{.*}} "reduction"]} ins(%[[PF]] :
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %f = tensor.extract %factors[%m, %n] : tensor<?x?xf32>
      attn.yield %s, %f : f32, f32
    } : !t, !t, !t -> !t
  return %o : !t
}
