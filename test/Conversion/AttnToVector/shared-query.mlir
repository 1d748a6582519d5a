// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 | FileCheck %s

#tile = affine_map<(d0)[s0] -> (-d0 + s0, 32)>

// Two loops over one query: packed once, before both, in the block that owns the scratch buffers.
// CHECK-LABEL: func @two_loops
func.func @two_loops(%q: memref<?x64xf32>, %k: memref<64x64xf32>, %acc: memref<32x64xf32>, %max: memref<32xf32>,
                     %sum: memref<32xf32>, %rows: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %scale = arith.constant 0.18 : f32
  // CHECK: scf.forall (%[[M0:.*]]) =
  scf.forall (%m0) = (0) to (%rows) step (32) {
    // CHECK: memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
    // CHECK: %[[MT:.*]] = affine.min
    %mt = affine.min #tile(%m0)[%rows]
    // CHECK: %[[TILE:.*]] = memref.subview %{{.*}}[%[[M0]], 0] [%[[MT]], 64]
    // CHECK: memref.load %[[TILE]]
    // CHECK-NOT: memref.load %[[TILE]]
    %tile = memref.subview %q[%m0, 0] [%mt, 64] [1, 1] : memref<?x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    %a = memref.subview %acc[0, 0] [%mt, 64] [1, 1] : memref<32x64xf32> to memref<?x64xf32, strided<[64, 1]>>
    %x = memref.subview %max[0] [%mt] [1] : memref<32xf32> to memref<?xf32, strided<[1]>>
    %s = memref.subview %sum[0] [%mt] [1] : memref<32xf32> to memref<?xf32, strided<[1]>>
    scf.for %i = %c0 to %n step %c1 {
      attn.online_attention %tile, %k, %k scale(%scale) outs(%a, %x, %s)
        : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<64x64xf32>, memref<64x64xf32>,
          memref<?x64xf32, strided<[64, 1]>>, memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>
    }
    scf.for %i = %c0 to %n step %c1 {
      attn.online_attention %tile, %k, %k scale(%scale) outs(%a, %x, %s)
        : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<64x64xf32>, memref<64x64xf32>,
          memref<?x64xf32, strided<[64, 1]>>, memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>
    }
  }
  return
}
