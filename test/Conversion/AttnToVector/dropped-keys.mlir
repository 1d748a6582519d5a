// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 --split-input-file | FileCheck %s

// Which keys some row keeps is found once the scores are masked; values of the others are not read. Rows that are not there
// keep none.
// CHECK-LABEL: func @f32(
// CHECK-SAME:    %[[V:[a-z0-9]+]]: memref<64x64xf32>, %[[ACC:[a-z0-9]+]]: memref<30x64xf32>
func.func @f32(%q: memref<30x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %acc: memref<30x64xf32>,
               %max: memref<30xf32>, %sum: memref<30xf32>, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  // CHECK: %[[KEPT:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
  // CHECK: %[[EXIST:.*]] = vector.create_mask
  // CHECK: %[[KEEP:.*]] = arith.cmpi sle
  // CHECK: %[[BOTH:.*]] = arith.andi %[[KEEP]], %[[EXIST]] : vector<16xi1>
  // CHECK: arith.select %[[BOTH]]
  // CHECK: arith.cmpf une
  // CHECK: %[[ANY:.*]] = vector.reduction <or>
  // CHECK: %[[FLAG:.*]] = arith.select %[[ANY]]
  // CHECK: memref.store %[[FLAG]], %[[KEPT]][
  // CHECK: %[[LOADED:.*]] = memref.load %[[KEPT]][
  // CHECK: %[[IS:.*]] = arith.cmpf one, %[[LOADED]]
  // CHECK: %[[MASK:.*]] = vector.broadcast %[[IS]] : i1 to vector<16xi1>
  // CHECK: vector.maskedload %[[V]][{{.*}}], %[[MASK]]
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %c0, %m0, %n0) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : memref<30x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<30x64xf32>, memref<30xf32>, memref<30xf32>
  return
}

// -----

// Values that are widened become zeros on the way.
// CHECK-LABEL: func @f16(
func.func @f16(%q: memref<32x64xf16>, %k: memref<64x64xf16>, %v: memref<64x64xf16>, %acc: memref<32x64xf32>,
               %max: memref<32xf32>, %sum: memref<32xf32>, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  // CHECK: vector.reduction <or>
  // CHECK: %[[IS:.*]] = arith.cmpf one
  // CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
  // CHECK: %[[VALUE:.*]] = arith.select %[[IS]], %[[WIDE]]
  // CHECK: vector.store %[[VALUE]]
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %c0, %m0, %n0) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : memref<32x64xf16>, memref<64x64xf16>, memref<64x64xf16>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}

// -----

// Without a mask, and with a score function that drops nothing, there is nothing to find.
// CHECK-LABEL: func @nothing_dropped(
// CHECK-NOT: vector.reduction
func.func @nothing_dropped(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %acc: memref<32x64xf32>,
                           %max: memref<32xf32>, %sum: memref<32xf32>, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %c0, %m0, %n0) outs(%acc, %max, %sum)
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      attn.yield %t : f32
    }
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}
