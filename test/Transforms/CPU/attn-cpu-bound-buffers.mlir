// RUN: attn-opt %s --attn-cpu-bound-buffers --split-input-file --verify-diagnostics | FileCheck %s

#tile = affine_map<(d0)[s0] -> (-d0 + s0, 64)>

// CHECK-LABEL: func @bounded
func.func @bounded(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[BETWEEN:.*]] = memref.alloc(
  %between = memref.alloc(%n) : memref<?xf32>
  memref.store %x, %between[%c0] : memref<?xf32>
  // CHECK: scf.forall
  scf.forall (%i) = (0) to (%n) step (64) {
    // CHECK-NEXT: %[[STACK:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x16xf32>
    // CHECK: %[[SIZE:.*]] = affine.min
    %size = affine.min #tile(%i)[%n]
    // CHECK: memref.reinterpret_cast %[[STACK]] to offset: [0], sizes: [%[[SIZE]], 16], strides: [16, 1]
    %buffer = memref.alloc(%size) : memref<?x16xf32>
    memref.store %x, %buffer[%c0, %c0] : memref<?x16xf32>
  }
  // CHECK: memref.dealloc %[[BETWEEN]]
  // CHECK-NEXT: return
  return
}

// -----

func.func @unbounded(%n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    // expected-error @below {{expected a bounded buffer inside a block: no constant is known to be at least its size in 'memref<?xf32>'}}
    %buffer = memref.alloc(%n) : memref<?xf32>
    memref.store %x, %buffer[%c0] : memref<?xf32>
  }
  return
}
