// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// Reads that vary over a tile are gathers, at coordinates that stay inside; reads that do not are loads.
// CHECK-LABEL: func.func @document
func.func @document(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>, %ids: tensor<?x?xi32>, %slopes: tensor<?xf32>) -> tensor<?x?x?x64xf16> {
  // CHECK: arith.minsi {{.*}} : tensor<128x128xindex>
  // CHECK: memref.load {{.*}} : memref<?xf32
  // CHECK: tile.gather {{.*}} -> tensor<128x128xi32>
  // CHECK: arith.cmpi eq
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %slope = tensor.extract %slopes[%h] : tensor<?xf32>
      %t = arith.mulf %s, %slope : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %row = tensor.extract %ids[%b, %m] : tensor<?x?xi32>
      %key = tensor.extract %ids[%b, %n] : tensor<?x?xi32>
      %keep = arith.cmpi eq, %row, %key : i32
      attn.yield %keep : i1
    }
    : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
