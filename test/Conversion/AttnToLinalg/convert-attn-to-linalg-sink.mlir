// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s4: the sink starts the maximum and joins the sum; a sink of -inf adds nothing.
// CHECK-LABEL: func @sink(
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: tensor<?xf32>)
func.func @sink(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>) -> !t {
  // CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: %[[START:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]}
  // CHECK: %[[H:.*]] = linalg.index 1
  // CHECK: %[[X:.*]] = tensor.extract %[[SINK]][%[[H]]]
  // CHECK: linalg.yield %[[X]]
  // CHECK: linalg.generic {{.*}} outs(%[[START]]
  // CHECK: arith.maximumf
  // CHECK: math.exp
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]}
  // CHECK: %[[Y:.*]] = tensor.extract %[[SINK]]
  // CHECK: math.exp
  // CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[Y]], %[[LOWEST]]
  // CHECK: arith.select %[[NONE]], %[[ZERO]],
  %o = attn.attention %q, %k, %v sink(%sink : tensor<?xf32>) : !t, !t, !t -> !t
  return %o : !t
}
