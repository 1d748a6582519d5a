// RUN: attn-opt %s --convert-attn-to-vector=lanes=8 --split-input-file | FileCheck %s

// Threads share heads, so that of equal slots the last row is there as a whole. Halves are turned as vectors, others are copied.
// CHECK-LABEL: func @append(
// CHECK-SAME:    %[[NEW:.*]]: memref<?x?x40xbf16>, %[[SLOTS:.*]]: memref<?xi32>,
// CHECK:         scf.forall (%[[HEAD:.*]]) in
// CHECK:           scf.for %[[ROW:.*]] = %
// CHECK:             %[[SLOT:.*]] = memref.load %[[SLOTS]][%[[ROW]]]
// CHECK:             %[[WIDE:.*]] = arith.extsi %[[SLOT]]
// CHECK:             %[[EXISTS:.*]] = arith.cmpi ult, %[[WIDE]]
// CHECK:             scf.if %[[EXISTS]] {
// CHECK:               arith.minsi
// CHECK:               arith.maxsi
// CHECK:               vector.load %{{.*}} : memref<?x8xf32>, vector<8xf32>
// CHECK:               arith.subf %{{.*}} : vector<8xf32>
// CHECK:               arith.addf %{{.*}} : vector<8xf32>
// CHECK:               vector.store
// CHECK:               vector.store
func.func @append(%new: memref<?x?x40xbf16>, %slots: memref<?xi32>, %at: memref<?xi64>, %cos: memref<?x8xf32>, %sin: memref<?x8xf32>, %pool: memref<?x?x?x40xbf16>) {
  attn.append %new[%slots] rotary(%at, %cos, %sin : memref<?xi64>, memref<?x8xf32>, memref<?x8xf32>) into %pool : memref<?x?x40xbf16>, memref<?xi32>, memref<?x?x?x40xbf16>
  return
}

// -----

// Pairs that are next to each other are turned one by one.
// CHECK-LABEL: func @neighbours(
// CHECK:         scf.forall (%[[ROW:.*]]) in
// CHECK:           scf.for %[[HEAD:.*]] = %
// CHECK:             scf.for %[[PAIR:.*]] = %
// CHECK:               memref.load %{{.*}} : memref<?x5xf32>
// CHECK:               memref.store
// CHECK:               memref.store
func.func @neighbours(%x: memref<?x?x10xf32>, %at: memref<?xi64>, %cos: memref<?x5xf32>, %sin: memref<?x5xf32>, %o: memref<?x?x10xf32>) {
  attn.rotary %x at %at by %cos, %sin interleaved outs(%o) : memref<?x?x10xf32>, memref<?xi64>, memref<?x5xf32>, memref<?x5xf32>, memref<?x?x10xf32>
  return
}
