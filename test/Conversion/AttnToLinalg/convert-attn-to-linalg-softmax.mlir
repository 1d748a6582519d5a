// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s4: the row maximum, the exponentials (0 where dropped, though -inf less -inf is NaN), their sum.
// CHECK-LABEL: func @softmax(
func.func @softmax(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: linalg.generic
  // CHECK: %[[T:.*]] = linalg.generic
  // CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[T]]
  // CHECK: arith.maximumf
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[MAX]] : {{.*}}) outs(%[[T]]
  // CHECK-NEXT: ^bb0(%[[M:.*]]: f32, %[[X:.*]]: f32)
  // CHECK: %[[D:.*]] = arith.subf %[[X]], %[[M]]
  // CHECK: %[[E:.*]] = math.exp %[[D]]
  // CHECK: %[[DROPPED:.*]] = arith.cmpf oeq, %[[X]], %[[LOWEST]]
  // CHECK: arith.select %[[DROPPED]], %[[ZERO]], %[[E]]
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[P]]
  // CHECK: arith.addf
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}
