// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s5, s6: lse = max + log(L), -inf where nothing is kept.
// CHECK-LABEL: func @lse(
func.func @lse(%q: !t, %k: !t, %v: !t) -> (!t, tensor<?x?x?xf32>) {
  // CHECK: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
  // CHECK: %[[NONE:.*]] = arith.cmpf oeq
  // CHECK: arith.divf
  // CHECK: %[[LSE:.*]] = linalg.generic
  // CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[MAX:.*]]: f32)
  // CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[L]],
  // CHECK: %[[LOG:.*]] = math.log %[[L]]
  // CHECK: %[[X:.*]] = arith.addf %[[MAX]], %[[LOG]]
  // CHECK: arith.select %[[EMPTY]], %[[LOWEST]], %[[X]]
  // CHECK: return %{{.*}}, %[[LSE]]
  %o, %lse = attn.attention %q, %k, %v : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %o, %lse : !t, tensor<?x?x?xf32>
}
