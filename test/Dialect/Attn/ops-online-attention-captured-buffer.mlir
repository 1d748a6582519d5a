// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// Once the op is on buffers, so is what its regions read.
// CHECK-LABEL: func @captured(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>)
func.func @captured(%q: memref<8x64xf16>, %k: memref<4x64xf16>, %v: memref<4x16xf16>, %scale: f32,
                    %acc: memref<8x16xf32>, %max: memref<8xf32>, %sum: memref<8xf32>, %ids: memref<?xi32>) {
  // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
  // CHECK: memref.load %[[IDS]][%[[M]]]
  // CHECK: memref.load %[[IDS]][%[[N]]]
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      %row = memref.load %ids[%m] : memref<?xi32>
      %key = memref.load %ids[%n] : memref<?xi32>
      %keep = arith.cmpi eq, %row, %key : i32
      attn.yield %keep : i1
    } : memref<8x64xf16>, memref<4x64xf16>, memref<4x16xf16>, memref<8x16xf32>, memref<8xf32>, memref<8xf32>
  return
}
