// RUN: attn-opt %s --attn-expand-variants --split-input-file | FileCheck %s

!t = tensor<?x?x?x16xf16>

// Seven rounds of Philox4x32 of n without bits 0 and 3, m without bit 3, h and b; the seed is the key.
// CHECK-LABEL: func @dropout(
// CHECK-SAME: %[[SEED:[a-z0-9]+]]: tensor<1xi64>
func.func @dropout(%q: !t, %seed: tensor<1xi64>) -> !t {
  // CHECK: score(%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-DAG: %[[M32:.*]] = arith.index_cast %[[M]] : index to i32
  // CHECK-DAG: %[[N32:.*]] = arith.index_cast %[[N]] : index to i32
  // CHECK-DAG: %[[NEAR_N:.*]] = arith.constant -10 : i32
  // CHECK-DAG: %[[NEAR_M:.*]] = arith.constant -9 : i32
  // CHECK-DAG: arith.andi %[[N32]], %[[NEAR_N]]
  // CHECK-DAG: arith.andi %[[M32]], %[[NEAR_M]]
  // CHECK-DAG: arith.index_cast %[[H]] : index to i32
  // CHECK-DAG: arith.index_cast %[[B]] : index to i32
  // CHECK: tensor.extract %[[SEED]]
  // CHECK-COUNT-14: arith.muli %{{.*}}, %{{.*}} : i64
  // CHECK-NOT: arith.muli %{{.*}} : i64
  // CHECK: %[[HALF:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
  // CHECK: arith.shrui %{{.*}}, %[[HALF]] : i32
  // CHECK: %[[THRESHOLD:.*]] = arith.constant 16384 : i32
  // CHECK: %[[DROPPED:.*]] = arith.cmpi ult, %{{.*}}, %[[THRESHOLD]] : i32
  // CHECK: %[[F:.*]] = arith.select %[[DROPPED]], %{{.*}}, %{{.*}} : f32
  // CHECK-NEXT: attn.yield %[[S]], %[[F]] : f32, f32
  %o = attn.attention %q, %q, %q variants [#attn.dropout<0.25>] captures(%seed : tensor<1xi64>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xf16>

// Other scores come before or after it, and two of them multiply.
// CHECK-LABEL: func @composed(
func.func @composed(%q: !t, %seed: tensor<1xi32>, %other: tensor<1xindex>) -> !t {
  // CHECK: score(
  // CHECK: arith.extsi %{{.*}} : i32 to i64
  // CHECK: %[[F:.*]] = arith.select
  // CHECK: %[[T:.*]] = math.tanh
  // CHECK: %[[CAPPED:.*]] = arith.mulf %[[T]],
  // CHECK: arith.index_cast %{{.*}} : index to i64
  // CHECK: %[[G:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
  // CHECK: %[[FG:.*]] = arith.mulf %{{.*}}, %[[G]] : f32
  // CHECK-NEXT: attn.yield %[[CAPPED]], %[[FG]] : f32, f32
  %o = attn.attention %q, %q, %q variants [#attn.dropout<0.5>, #attn.softcap<30.0 : f32>, #attn.dropout<0.75>]
    captures(%seed, %other : tensor<1xi32>, tensor<1xindex>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xf16>

// Nothing is drawn where nothing is open.
// CHECK-LABEL: func @ends(
func.func @ends(%q: !t, %seed: tensor<1xi64>) -> (!t, !t) {
  // CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK-NEXT: attn.yield %{{.*}}, %[[ONE]] : f32, f32
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK-NEXT: attn.yield %{{.*}}, %[[ZERO]] : f32, f32
  %o = attn.attention %q, %q, %q variants [#attn.dropout<0.0>] captures(%seed : tensor<1xi64>) : !t, !t, !t -> !t
  %p = attn.attention %q, %q, %q variants [#attn.dropout<1.0>] captures(%seed : tensor<1xi64>) : !t, !t, !t -> !t
  return %o, %p : !t, !t
}
