// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-vector="lanes=16 bf16-dot" | FileCheck %s --check-prefix=PAIRS

#tile = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
!row = memref<32xf32>
!any = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = memref<64x64xf32, strided<[?, 1], offset: ?>>

// A whole tile of keys, then one that may be shorter: products are functions of a number of keys, the softmax is not shared.
// CHECK-LABEL: func @two_steps
// CHECK:         %[[WHOLE:.*]] = memref.cast %{{.*}} : memref<64x64xf32, {{.*}}> to memref<?x64xf32
// CHECK:         call @[[SCORES:attn.scores.64x32[.0-9]*]]({{.*}}, %[[WHOLE]], %{{.*}}) : (memref<64x32xf32>, memref<?x64xf32, {{.*}}>, index,
// CHECK:         call @[[SUMS:attn.sums.32x64[.0-9]*]](
// CHECK:         call @[[SCORES]](
// CHECK:         call @[[SUMS]](
func.func @two_steps(%q: memref<32x64xf32>, %k: !any, %whole: !tile, %acc: memref<32x64xf32>, %max: !row, %sum: !row, %n0: index, %n: index) {
  %scale = arith.constant 0.18 : f32
  attn.online_attention %q, %whole, %whole scale(%scale) outs(%acc, %max, %sum)
    : memref<32x64xf32>, !tile, !tile, memref<32x64xf32>, !row, !row
  %nt = affine.min #tile(%n0)[%n]
  %t = memref.subview %k[%n0, 0] [%nt, 64] [1, 1] : !any to !any
  attn.online_attention %q, %t, %t scale(%scale) outs(%acc, %max, %sum)
    : memref<32x64xf32>, !any, !any, memref<32x64xf32>, !row, !row
  return
}

// What one step calls alone is where it is called.
// CHECK-LABEL: func @one_step
// CHECK-NOT:     call
// CHECK:         return
func.func @one_step(%q: memref<16x8xf32>, %k: memref<3x8xf32>, %acc: memref<16x8xf32>, %max: memref<16xf32>, %sum: memref<16xf32>) {
  %scale = arith.constant 0.35 : f32
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<16x8xf32>, memref<3x8xf32>, memref<3x8xf32>, memref<16x8xf32>, memref<16xf32>, memref<16xf32>
  return
}

// One matrix in two packed forms: gradients multiply no pairs.
// PAIRS-LABEL: func @two_forms
// PAIRS-DAG:     memref.alloca() {{.*}} : memref<4x16xf32>
// PAIRS-DAG:     memref.alloca() {{.*}} : memref<8x16xf32>
// PAIRS:         return
func.func @two_forms(%q: memref<16x8xbf16>, %k: memref<6x8xbf16>, %acc: memref<16x8xf32>, %max: memref<16xf32>, %sum: memref<16xf32>, %i: index) {
  %scale = arith.constant 0.125 : f32
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<16x8xbf16>, memref<6x8xbf16>, memref<6x8xbf16>, memref<16x8xf32>, memref<16xf32>, memref<16xf32>
  attn.grad_query_step %q, %k, %k, %q, %max, %sum scale(%scale) at(%i, %i, %i, %i) outs(%acc)
    : memref<16x8xbf16>, memref<6x8xbf16>, memref<6x8xbf16>, memref<16x8xbf16>, memref<16xf32>, memref<16xf32>, memref<16x8xf32>
  return
}

// CHECK:       func.func private @[[SCORES]](
// CHECK-NOT:   func.func private @attn.scores
// CHECK:       func.func private @[[SUMS]](
// CHECK-NOT:   func.func private
