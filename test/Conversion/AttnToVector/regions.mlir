// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 --split-input-file | FileCheck %s

// The row is a vector, the key a scalar; what depends on rows only is computed once per register of rows.
// CHECK-LABEL: func @mask(
// CHECK-SAME:    %[[OFFSET:[a-z0-9]+]]: index
func.func @mask(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %acc: memref<32x64xf32>,
                %max: memref<32xf32>, %sum: memref<32xf32>, %offset: index, %m0: index, %n0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  // CHECK: vector.step : vector<16xindex>
  // CHECK: scf.for
  // CHECK: %[[SPLAT:.*]] = vector.broadcast %[[OFFSET]] : index to vector<16xindex>
  // CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %[[SPLAT]] : vector<16xindex>
  // CHECK: scf.for
  // CHECK: %[[KEY:.*]] = vector.broadcast %{{.*}} : index to vector<16xindex>
  // CHECK: %[[KEEP:.*]] = arith.cmpi sle, %[[KEY]], %[[LAST]] : vector<16xindex>
  // CHECK: %[[BOTH:.*]] = arith.andi %[[KEEP]], %{{.*}} : vector<16xi1>
  // CHECK: arith.select %[[BOTH]], %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %c0, %m0, %n0) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      %last = arith.addi %m, %offset : index
      %keep = arith.cmpi sle, %n, %last : index
      attn.yield %keep : i1
    }
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}

// -----

// Reads: of the head once, of the key as a scalar, of rows as a gather that leaves out lanes without a row.
// CHECK-LABEL: func @reads(
// CHECK-SAME:    %[[SLOPES:[a-z0-9]+]]: memref<?xf32>, %[[KEYS:[a-z0-9]+]]: memref<?xf32>, %[[ROWS:[a-z0-9]+]]: memref<?x?xbf16
func.func @reads(%slopes: memref<?xf32>, %keys: memref<?xf32>, %rows: memref<?x?xbf16, strided<[?, 1], offset: ?>>,
                 %q: memref<30x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %acc: memref<30x64xf32>,
                 %max: memref<30xf32>, %sum: memref<30xf32>, %h0: index) {
  %scale = arith.constant 0.18 : f32
  %c0 = arith.constant 0 : index
  // CHECK: memref.load %[[SLOPES]]
  // CHECK: scf.for
  // CHECK: %[[EXIST:.*]] = vector.create_mask
  // CHECK: memref.extract_aligned_pointer_as_index %[[ROWS]]
  // CHECK: %[[BITS:.*]] = llvm.intr.masked.gather %{{.*}}, %[[EXIST]], %{{.*}} {alignment = 2 : i32}
  // CHECK: arith.bitcast %[[BITS]] : vector<16xi16> to vector<16xbf16>
  // CHECK: scf.for
  // CHECK: %[[KEY:.*]] = memref.load %[[KEYS]]
  // CHECK: vector.broadcast %[[KEY]] : f32 to vector<16xf32>
  attn.online_attention %q, %k, %v scale(%scale) at(%c0, %h0, %c0, %c0) outs(%acc, %max, %sum)
    score(%s, %b, %h, %m, %n) {
      %slope = memref.load %slopes[%h] : memref<?xf32>
      %key = memref.load %keys[%n] : memref<?xf32>
      %row = memref.load %rows[%h, %m] : memref<?x?xbf16, strided<[?, 1], offset: ?>>
      %wide = arith.extf %row : bf16 to f32
      %0 = arith.mulf %s, %slope : f32
      %1 = arith.addf %0, %key : f32
      %2 = arith.addf %1, %wide : f32
      attn.yield %2 : f32
    }
    : memref<30x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<30x64xf32>, memref<30xf32>, memref<30xf32>
  return
}
