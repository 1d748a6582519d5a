// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// What the regions read becomes a buffer too.
// CHECK-LABEL: func @captured(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>)
func.func @captured(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
                    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %ids: tensor<?xi32>) -> tensor<8x16xf32> {
  // CHECK: attn.online_attention
  // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
  // CHECK: memref.load %[[IDS]][%[[M]]]
  // CHECK: memref.load %[[IDS]][%[[N]]]
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      %row = tensor.extract %ids[%m] : tensor<?xi32>
      %key = tensor.extract %ids[%n] : tensor<?xi32>
      %keep = arith.cmpi eq, %row, %key : i32
      attn.yield %keep : i1
    } : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return %r#0 : tensor<8x16xf32>
}
