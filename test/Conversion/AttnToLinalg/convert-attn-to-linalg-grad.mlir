// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>
!row = tensor<?x?x?xf32>

// g2 to g7, a loop nest a line; what is not wanted is not there.
// CHECK-LABEL: func @query(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{.*}}, %[[K:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %[[O:[a-z0-9]+]]: {{.*}}, %[[L:[a-z0-9]+]]: {{.*}}, %[[DO:[a-z0-9]+]]:
func.func @query(%q: !t, %k: !t, %v: !t, %o: !t, %l: !row, %do: !t) -> !t {
  // CHECK: %[[DELTA:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[O]], %[[DO]] :
  // CHECK: %[[S:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[Q]] :
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[L]] :
  // CHECK:   math.exp
  // CHECK: %[[DP:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[DO]] :
  // CHECK:   tensor.extract %[[V]]
  // CHECK: %[[DT:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[DP]], %[[DELTA]] :
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[DT]] :
  // CHECK:   tensor.extract %[[K]]
  // CHECK: %[[DQ:.*]] = linalg.generic {{.*}} outs(%[[SUM]] :
  // CHECK-NOT: linalg.generic
  // CHECK: return %[[DQ]]
  %d = attn.attention_grad %q, %k, %v, %o, %l, %do : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// Sums over the heads of a group and the rows.
// CHECK-LABEL: func @value(
// CHECK-SAME: %[[DO:[a-z0-9]+]]: tensor<?x?x?x16xf32>)
func.func @value(%q: !t, %k: !t, %v: !t, %o: !t, %l: !row, %do: !t) -> !t {
  // CHECK: %[[ONE_OR_MORE:.*]] = arith.maxui
  // CHECK: %[[GROUP:.*]] = arith.divui %{{.*}}, %[[ONE_OR_MORE]]
  // CHECK: tensor.empty(%[[GROUP]], %{{.*}}) : tensor<?x?xf32>
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
  // CHECK:   tensor.extract %[[DO]]
  %d = attn.attention_grad %q, %k, %v, %o, %l, %do : !t, !t, !t, !t, !row, !t -> d_value(!t)
  return %d : !t
}
