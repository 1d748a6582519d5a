// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s1: S = sum over d of Q K; head h reads key head h * Hkv / H.
// CHECK-LABEL: func @products(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x16xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x?x16xf32>, %[[V:[a-z0-9]+]]: tensor<?x?x?x16xf32>)
func.func @products(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK-DAG: %[[H:.*]] = tensor.dim %[[Q]], %c1
  // CHECK-DAG: %[[HKV:.*]] = tensor.dim %[[K]], %c1
  // CHECK: %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%[[Q]] : {{.*}}) outs(%{{.*}} : tensor<?x?x?x?xf32>)
  // CHECK: %[[HEAD:.*]] = linalg.index 1
  // CHECK: %[[X:.*]] = arith.muli %[[HEAD]], %[[HKV]]
  // CHECK: %[[KH:.*]] = arith.divui %[[X]], %[[H]]
  // CHECK: tensor.extract %[[K]][%{{.*}}, %[[KH]], %{{.*}}, %{{.*}}]
  // CHECK: arith.mulf
  // CHECK: arith.addf
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}
