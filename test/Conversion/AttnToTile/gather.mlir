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

// A distance is kept inside where it is read, unless the region does that itself; rows need no bound then.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: arith.minsi {{.*}} : tensor<128x128xindex>
// CHECK-NOT: arith.minsi {{.*}} : tensor<128x128xindex>
// CHECK: return
func.func @kept(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %v: tensor<?x?x?x128xf16>, %bias: tensor<?xf32>) -> tensor<?x?x?x128xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = tensor.dim %bias, %c0 : tensor<?xf32>
  %last = arith.subi %size, %c1 : index
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %distance = arith.subi %m, %n : index
      %upper = arith.minsi %distance, %last : index
      %at = arith.maxsi %upper, %c0 : index
      %read = tensor.extract %bias[%at] : tensor<?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sge, %m, %n : index
      attn.yield %keep : i1
    }
    : tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16> -> tensor<?x?x?x128xf16>
  return %o : tensor<?x?x?x128xf16>
}

// Another tensor's size says nothing of this one's.
// CHECK-LABEL: func.func @other
// CHECK: %[[UPPER:.*]] = arith.minsi {{.*}} : tensor<128x128xindex>
// CHECK: %[[AT:.*]] = arith.maxsi %[[UPPER]]
// CHECK: %[[LAST:.*]] = arith.minsi %[[AT]], {{.*}} : tensor<128x128xindex>
// CHECK: %[[INSIDE:.*]] = arith.maxsi %[[LAST]]
// CHECK: tile.gather %{{[^[]*}}[%[[INSIDE]]]
func.func @other(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %v: tensor<?x?x?x128xf16>, %bias: tensor<?xf32>, %slopes: tensor<?xf32>) -> tensor<?x?x?x128xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = tensor.dim %slopes, %c0 : tensor<?xf32>
  %last = arith.subi %size, %c1 : index
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %distance = arith.subi %m, %n : index
      %upper = arith.minsi %distance, %last : index
      %at = arith.maxsi %upper, %c0 : index
      %read = tensor.extract %bias[%at] : tensor<?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sge, %m, %n : index
      attn.yield %keep : i1
    }
    : tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16> -> tensor<?x?x?x128xf16>
  return %o : tensor<?x?x?x128xf16>
}

// CHECK-LABEL: func.func @plain
// CHECK: %[[DISTANCE:.*]] = arith.subi {{.*}} : tensor<128x128xindex>
// CHECK: %[[UPPER:.*]] = arith.minsi %[[DISTANCE]]
// CHECK: %[[INSIDE:.*]] = arith.maxsi %[[UPPER]]
// CHECK: tile.gather %{{[^[]*}}[%[[INSIDE]]]
func.func @plain(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %v: tensor<?x?x?x128xf16>, %bias: tensor<?xf32>) -> tensor<?x?x?x128xf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %distance = arith.subi %m, %n : index
      %read = tensor.extract %bias[%distance] : tensor<?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sge, %m, %n : index
      attn.yield %keep : i1
    }
    : tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16> -> tensor<?x?x?x128xf16>
  return %o : tensor<?x?x?x128xf16>
}
