// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

// s7: weights exp(lse_s - max); a part that kept nothing weighs nothing and is not read.
// CHECK-LABEL: func @merge(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4x?x16xf32>, %[[L:[a-z0-9]+]]: tensor<4x?xf32>
func.func @merge(%p: tensor<4x?x16xf32>, %l: tensor<4x?xf32>, %o: tensor<?x16xf32>, %lse: tensor<?xf32>) -> (tensor<?x16xf32>, tensor<?xf32>) {
  // CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[L]]
  // CHECK: arith.maximumf
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[L]], %[[MAX]]
  // CHECK: math.exp
  // CHECK: %[[O:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[P]], %[[L]], %[[MAX]]
  // CHECK: %[[IS_MAX:.*]] = arith.cmpf oeq, %[[LSE:.*]], %[[TOP:.*]] : f32
  // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq
  // CHECK: arith.select %[[IS_MAX]]
  // CHECK: %[[TERM:.*]] = arith.mulf
  // CHECK: arith.select %[[EMPTY]], %{{.*}}, %[[TERM]]
  // CHECK: linalg.generic {{.*}} ins(%[[SUM]] : {{.*}}) outs(%[[O]]
  // CHECK: arith.divf
  // CHECK: linalg.generic {{.*}} ins(%[[SUM]] : {{.*}}) outs(%[[MAX]]
  // CHECK: math.log
  %r:2 = attn.merge %p, %l outs(%o, %lse) : tensor<4x?x16xf32>, tensor<4x?xf32>, tensor<?x16xf32>, tensor<?xf32> -> tensor<?x16xf32>, tensor<?xf32>
  return %r#0, %r#1 : tensor<?x16xf32>, tensor<?xf32>
}
