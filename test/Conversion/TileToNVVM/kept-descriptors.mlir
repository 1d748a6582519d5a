// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

#acc = #tile.acc<units = 1>
!slot = !tile.shared<16x256xbf16, swizzle = 128>
!kept = !tile.shared<64x256xbf16, swizzle = 128>
!narrow_slot = !tile.shared<16x128xbf16, swizzle = 128>
!narrow_kept = !tile.shared<64x128xbf16, swizzle = 128>

// Descriptors of tiles of 16 k steps that stay would fill the uniform registers: empty assembly in the loop makes each look new in
// every turn.
// CHECK-LABEL: llvm.func @two_kept
func.func @two_kept(%n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %keys = tile.alloc_shared : !kept
  %values = tile.alloc_shared : !kept
  %rows = tile.alloc_shared : !slot
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: llvm.cond_br
  // CHECK: llvm.inline_asm {{.*}}"", "=l,0{{.*}} : (i64) -> i64
  // CHECK: llvm.inline_asm {{.*}}"", "=l,0{{.*}} : (i64) -> i64
  // CHECK: wgmma.mma_async
  // CHECK: llvm.inline_asm {{.*}}"", "=l,0{{.*}} : (i64) -> i64
  // CHECK: wgmma.mma_async
  scf.for %i = %c0 to %n step %c1 {
    %s = tile.mma_async %keys, %rows {transpose_rhs} : !kept, !slot -> !tile.in_flight<tensor<64x16xf32, #acc>>
    %d = tile.mma_async %values, %rows {transpose_rhs} : !kept, !slot -> !tile.in_flight<tensor<64x16xf32, #acc>>
  }
  return
}

// Those of two tiles of 8 k steps fit.
// CHECK-LABEL: llvm.func @narrow
func.func @narrow(%n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %keys = tile.alloc_shared : !narrow_kept
  %rows = tile.alloc_shared : !narrow_slot
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: llvm.cond_br
  // CHECK-NOT: "=l,0
  // CHECK: wgmma.mma_async
  scf.for %i = %c0 to %n step %c1 {
    %s = tile.mma_async %keys, %rows {transpose_rhs} : !narrow_kept, !narrow_slot -> !tile.in_flight<tensor<64x16xf32, #acc>>
  }
  return
}
