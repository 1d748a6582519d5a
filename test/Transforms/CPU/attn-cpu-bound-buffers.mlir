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

// -----

#tile = affine_map<(d0)[s0] -> (-d0 + s0, 64)>

func.func private @use(memref<?x0xf32>, memref<?x4xf32, 1>, memref<4xf32, 1>)
// Upstream knows no strides of what has no elements; and memory stays where it is.
// CHECK-LABEL: func @spaces
func.func @spaces(%n: index) {
  scf.forall (%i) = (0) to (%n) step (64) {
    // CHECK-DAG: %[[NONE:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x0xf32>
    // CHECK-DAG: %[[FOUR:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x4xf32, 1>
    // CHECK-DAG: %[[STATIC:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xf32, 1>
    %size = affine.min #tile(%i)[%n]
    // CHECK: %[[X:.*]] = memref.reinterpret_cast %[[NONE]] to offset: [0], sizes: [%{{.*}}, 0], strides: [0, 1]
    %x = memref.alloc(%size) : memref<?x0xf32>
    // CHECK: %[[Y:.*]] = memref.reinterpret_cast %[[FOUR]] to offset: [0], sizes: [%{{.*}}, 4], strides: [4, 1]
    %y = memref.alloc(%size) : memref<?x4xf32, 1>
    // CHECK: call @use(%[[X]], %[[Y]], %[[STATIC]])
    %z = memref.alloc() : memref<4xf32, 1>
    func.call @use(%x, %y, %z) : (memref<?x0xf32>, memref<?x4xf32, 1>, memref<4xf32, 1>) -> ()
  }
  return
}
