// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s5, s6: O = P V / L, 0 where nothing is kept; the value of a dropped key is not read into the sum.
// CHECK-LABEL: func @output(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x16xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x?x16xf32>, %[[V:[a-z0-9]+]]: tensor<?x?x?x16xf32>)
func.func @output(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x?x?x?xf32>)
  // CHECK: math.exp
  // CHECK: %[[L:.*]] = linalg.generic {{.*}}"reduction"]}
  // CHECK: %[[O:.*]] = linalg.generic {{.*}}"reduction"]}
  // CHECK: tensor.extract %[[V]]
  // CHECK: %[[DROPPED:.*]] = arith.cmpf oeq, %{{.*}}, %[[ZERO]]
  // CHECK: arith.select %[[DROPPED]], %[[ZERO]],
  // CHECK: linalg.generic {{.*}} ins(%[[L]] : {{.*}}) outs(%[[O]] :
  // CHECK: %[[NONE:.*]] = arith.cmpf oeq, %{{.*}}, %[[ZERO]]
  // CHECK: arith.divf
  // CHECK: arith.select %[[NONE]], %[[ZERO]],
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}
