// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s2: T = score(scale * S, b, h, m, n)
// CHECK-LABEL: func @score(
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<?x?xf32>)
func.func @score(%q: !t, %k: !t, %v: !t, %bias: tensor<?x?xf32>) -> !t {
  // CHECK: linalg.generic
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
  // CHECK-NEXT: ^bb0(%[[S:.*]]: f32)
  // CHECK-DAG: %[[H:.*]] = linalg.index 1
  // CHECK-DAG: %[[M:.*]] = linalg.index 2
  // CHECK-DAG: %[[N:.*]] = linalg.index 3
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[S]],
  // CHECK: %[[I:.*]] = arith.addi %[[M]], %[[N]]
  // s13: no position, so it may be outside.
  // CHECK: %[[UPPER:.*]] = arith.minsi %[[I]],
  // CHECK: %[[AT:.*]] = arith.maxsi %[[UPPER]],
  // CHECK: %[[X:.*]] = tensor.extract %[[BIAS]][%[[H]], %[[AT]]]
  // CHECK: %[[T:.*]] = arith.addf %[[SCALED]], %[[X]]
  // What is read may be too large for base 2.
  // CHECK: arith.minimumf %[[T]],
  // CHECK: %[[BOUNDED:.*]] = arith.maximumf
  // CHECK: %[[RESULT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BOUNDED]]
  // CHECK: linalg.yield %[[RESULT]]
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %i = arith.addi %m, %n : index
      %x = tensor.extract %bias[%h, %i] : tensor<?x?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
