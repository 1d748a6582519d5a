// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

// A warp transposes 32 keys and 16 columns by one read and one write of four matrices: pairs of columns are taken apart by
// byte permutations, which put keys in quads. 128 x 64 elements are 16 such pieces, of which each of four warps has four.
// CHECK-LABEL: @transpose
// CHECK-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-NOT: ldmatrix
func.func @transpose() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %v = tile.alloc_shared at 0 : !tile.shared<128x64xf8E4M3FN, swizzle = 64>
  %t = tile.alloc_shared at 8192 : !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
  tile.transpose %v to %t : !tile.shared<128x64xf8E4M3FN, swizzle = 64>, !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
  return
}

// CHECK-LABEL: @words
// CHECK: %[[READ:.*]] = llvm.inline_asm has_side_effects {{.*}}"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];"
// CHECK-DAG: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};
func.func @words() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %v = tile.alloc_shared at 0 : !tile.shared<32x64xf8E5M2, swizzle = 64>
  %t = tile.alloc_shared at 2048 : !tile.shared<64x32xf8E5M2, swizzle = 32, quads>
  tile.transpose %v to %t : !tile.shared<32x64xf8E5M2, swizzle = 64>, !tile.shared<64x32xf8E5M2, swizzle = 32, quads>
  return
}

// Weights become words of four and stay in their threads.
// CHECK-LABEL: @weights
// CHECK: nvvm.convert.f32x2.to.f8x2 %{{.*}}, %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16(f8E4M3FN)
// CHECK: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2
// CHECK-NOT: shfl
func.func @weights(%m: memref<?x32xf32>, %at: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.alloc_shared at 0 : !tile.shared<64x32xf8E5M2, swizzle = 32, quads>
  %x = tile.load %m[%at, %at] : memref<?x32xf32> -> tensor<64x32xf32, #tile.acc<units = 1>>
  %p = arith.truncf %x : tensor<64x32xf32, #tile.acc<units = 1>> to tensor<64x32xf8E4M3FN, #tile.acc<units = 1>>
  %a = tile.convert_layout %p : tensor<64x32xf8E4M3FN, #tile.acc<units = 1>> -> tensor<64x32xf8E4M3FN, #tile.operand_a<units = 1, quads = true>>
  %s = tile.mma %a, %t {transpose_rhs} : tensor<64x32xf8E4M3FN, #tile.operand_a<units = 1, quads = true>>, !tile.shared<64x32xf8E5M2, swizzle = 32, quads> -> tensor<64x64xf32, #tile.acc<units = 1>>
  tile.store %s to %m[%at, %at] : tensor<64x64xf32, #tile.acc<units = 1>>, memref<?x32xf32>
  return
}

// What a loop begins with is bytes too.
// CHECK-LABEL: @begun
// CHECK: %[[ZERO:.*]] = {{.*}}constant{{.*}} : i8
// CHECK: vector<4xi8>
// CHECK: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3
func.func @begun(%m: memref<?x32xf32>, %at: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.alloc_shared at 0 : !tile.shared<64x32xf8E4M3FN, swizzle = 32, quads>
  %zero = arith.constant 0.0 : f8E4M3FN
  %p = tile.broadcast %zero : f8E4M3FN -> tensor<64x32xf8E4M3FN, #tile.acc<units = 1>>
  %a = tile.convert_layout %p : tensor<64x32xf8E4M3FN, #tile.acc<units = 1>> -> tensor<64x32xf8E4M3FN, #tile.operand_a<units = 1, quads = true>>
  %s = tile.mma %a, %t {transpose_rhs} : tensor<64x32xf8E4M3FN, #tile.operand_a<units = 1, quads = true>>, !tile.shared<64x32xf8E4M3FN, swizzle = 32, quads> -> tensor<64x64xf32, #tile.acc<units = 1>>
  tile.store %s to %m[%at, %at] : tensor<64x64xf32, #tile.acc<units = 1>>, memref<?x32xf32>
  return
}
