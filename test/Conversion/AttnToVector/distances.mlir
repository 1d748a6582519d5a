// A distance of row and key stays inside of what it indexes: where a mask drops the key it may be negative.
// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 | FileCheck %s

// CHECK-LABEL: func @bias(
// CHECK: %[[DISTANCE:.*]] = arith.subi %{{.*}} : vector<16xindex>
// CHECK: %[[UPPER:.*]] = arith.minsi %[[DISTANCE]], %{{.*}} : vector<16xindex>
// CHECK: %[[INSIDE:.*]] = arith.maxsi %[[UPPER]], %{{.*}} : vector<16xindex>
// CHECK: arith.muli %[[INSIDE]], %{{.*}} : vector<16xindex>
// CHECK: masked.gather
func.func @bias(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %acc: memref<32x64xf32>,
                %max: memref<32xf32>, %sum: memref<32xf32>, %bias: memref<?xf32>, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %c0, %m0, %n0) outs(%acc, %max, %sum)
    score(%s, %b, %h, %m, %n) {
      %distance = arith.subi %m, %n : index
      %read = memref.load %bias[%distance] : memref<?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}

// So does an index that a tensor holds, and one that is the same for all lanes. The adjoint adds where the read reads.
// CHECK-LABEL: func @contribution(
// CHECK: %[[HEAD:.*]] = arith.maxsi %{{.*}}, %c0{{.*}} : index
// CHECK: %[[READ:.*]] = arith.maxsi %{{.*}} : vector<16xindex>
// CHECK: arith.muli %[[READ]], %{{.*}} : vector<16xindex>
// CHECK: masked.gather
// CHECK: %[[UPPER:.*]] = arith.minsi %{{.*}} : vector<16xindex>
// CHECK: %[[INSIDE:.*]] = arith.maxsi %[[UPPER]], %{{.*}} : vector<16xindex>
// CHECK: scf.for
// CHECK: %[[LANE:.*]] = vector.extract %[[INSIDE]][%{{.*}}] : index from vector<16xindex>
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[LANE]]] : memref<?x?xf32>
func.func @contribution(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %o: memref<32x64xf32>,
                        %nl: memref<32xf32>, %delta: memref<32xf32>, %sum: memref<?x?xf32>, %ids: memref<?xindex>,
                        %bias: memref<?x?xf32>, %b0: index, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c1 = arith.constant 1 : index
  attn.grad_captured_step %q, %k, %v, %o, %nl, %delta scale(%scale) at(%b0, %b0, %m0, %n0) outs(%sum)
    score(%s, %b, %h, %m, %n) {
      %head = arith.subi %h, %c1 : index
      %id = memref.load %ids[%m] : memref<?xindex>
      %read = memref.load %bias[%head, %id] : memref<?x?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    } grad(%s, %dt, %b, %h, %m, %n) {
      %head = arith.subi %h, %c1 : index
      %id = memref.load %ids[%m] : memref<?xindex>
      attn.contribute %dt to %bias[%head, %id] : memref<?x?xf32>
      attn.yield %dt : f32
    }
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>, memref<?x?xf32>
  return
}

// A position that went through 32 bits is one, and one that went through 8 bits may have wrapped.
// CHECK-LABEL: func @narrow(
// CHECK-COUNT-1: arith.maxsi %{{.*}} : vector<16xindex>
// CHECK-NOT: arith.maxsi %{{.*}} : vector<16xindex>
// CHECK: return
func.func @narrow(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %acc: memref<32x64xf32>,
                  %max: memref<32xf32>, %sum: memref<32xf32>, %bias: memref<?x?xf32>, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %c0, %m0, %n0) outs(%acc, %max, %sum)
    score(%s, %b, %h, %m, %n) {
      %m32 = arith.index_cast %m : index to i32
      %row = arith.index_cast %m32 : i32 to index
      %m8 = arith.index_cast %m : index to i8
      %wrapped = arith.index_cast %m8 : i8 to index
      %read = memref.load %bias[%row, %wrapped] : memref<?x?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}
