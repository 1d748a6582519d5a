// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 | FileCheck %s

// Batches and heads are shared among threads, rows run in a loop; a partial that kept nothing is not read.
// CHECK-LABEL: func @merge(
// CHECK-SAME:    %[[P:.*]]: memref<?x?x?x?x32xf32>, %[[PL:.*]]: memref<?x?x?x?xf32>, %[[OUT:.*]]: memref<?x?x?x32xbf16>, %[[LSE:.*]]: memref<?x?x?xf32>
func.func @merge(%partial: memref<?x?x?x?x32xf32>, %partial_lse: memref<?x?x?x?xf32>, %out: memref<?x?x?x32xbf16>, %lse: memref<?x?x?xf32>) {
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]]) in
  // CHECK: scf.for %[[M:[a-z0-9]+]] =
  // CHECK: scf.for %[[S:[a-z0-9]+]] =
  // CHECK: memref.load %[[PL]][%[[S]], %[[B]], %[[H]], %[[M]]]
  // CHECK: scf.for
  // CHECK: scf.for %[[D:[a-z0-9]+]] =
  // CHECK: scf.for %[[S2:[a-z0-9]+]] =
  // CHECK: %[[KEPT:.*]] = arith.cmpf une
  // CHECK: scf.if %[[KEPT]]
  // CHECK: vector.load %[[P]][%[[S2]], %[[B]], %[[H]], %[[M]], %[[D]]]
  // CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
  // CHECK: vector.store {{.*}}, %[[OUT]]
  // CHECK: math.log
  // CHECK: memref.store {{.*}}, %[[LSE]]
  attn.merge %partial, %partial_lse outs(%out, %lse) : memref<?x?x?x?x32xf32>, memref<?x?x?x?xf32>, memref<?x?x?x32xbf16>, memref<?x?x?xf32>
  return
}
