// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 --split-input-file | FileCheck %s

// CHECK-LABEL: func @fill
func.func @fill(%a: memref<?x64xf32>, %b: memref<?xf32>, %x: f32) {
  // CHECK: vector.store {{.*}} : memref<?x64xf32>, vector<16xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<?x64xf32>)
  // CHECK: vector.store {{.*}} : memref<?xf32>, vector<16xf32>
  // CHECK: memref.store {{.*}} : memref<?xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<?xf32>)
  // CHECK-NOT: linalg.fill
  return
}

// -----

// Elements apart in memory are copied one by one.
// CHECK-LABEL: func @copy
func.func @copy(%a: memref<4x32xf32>, %b: memref<4x32xf32>, %c: memref<?xf32, strided<[?]>>, %d: memref<?xf32>) {
  // CHECK: vector.load {{.*}} vector<16xf32>
  // CHECK: vector.store
  memref.copy %a, %b : memref<4x32xf32> to memref<4x32xf32>
  // CHECK-NOT: vector.load
  // CHECK: memref.load {{.*}} : memref<?xf32, strided<[?]>>
  memref.copy %c, %d : memref<?xf32, strided<[?]>> to memref<?xf32>
  // CHECK-NOT: memref.copy
  return
}
