// RUN: attn-opt %s --attn-cpu-append-destinations --attn-cpu-bufferize --cse --canonicalize --split-input-file | FileCheck %s

// The result is computed where the caller wants it: no allocation, no copy.
// CHECK-LABEL: func @in_place(
// CHECK-SAME:    %[[A:.*]]: memref<?x8xf32, strided<[?, 1], offset: ?>>, %{{.*}}: memref<?xf32, strided<[?], offset: ?>>,
// CHECK-SAME:    %[[OUT:.*]]: memref<?x8xf32, strided<[?, 1], offset: ?>>) {
func.func @in_place(%a: tensor<?x8xf32>, %b: tensor<?xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  // CHECK-NOT: memref.alloc
  // CHECK: scf.forall
  // CHECK: %[[TILE:.*]] = memref.subview %[[OUT]]
  // CHECK: linalg.fill {{.*}} outs(%[[TILE]]
  // CHECK-NOT: memref.copy
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x8xf32> {
    %t = tensor.empty() : tensor<1x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%t : tensor<1x8xf32>) -> tensor<1x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<?x8xf32>
    }
  }
  return %r : tensor<?x8xf32>
}

// -----

// Arguments are the caller's: one that is returned is copied, never written.
// CHECK-LABEL: func @argument(
// CHECK-SAME:    %[[A:.*]]: memref<4x8xf32, {{.*}}>, %[[OUT:.*]]: memref<4x8xf32, {{.*}}>)
func.func @argument(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: memref.copy %[[A]], %[[OUT]]
  return %a : tensor<4x8xf32>
}
