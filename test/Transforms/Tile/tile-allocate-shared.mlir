// RUN: attn-opt %s --tile-allocate-shared | FileCheck %s

// Tiles lie at multiples of 1024 bytes, barriers behind them.
// CHECK-LABEL: func.func @order
func.func @order() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // CHECK: tile.alloc_shared at 0
  // CHECK: tile.barrier_init 1 at 25600 : !tile.barrier<2>
  // CHECK: tile.alloc_shared at 1024
  // CHECK: tile.barrier_init 1 at 25616 : !tile.barrier<1>
  %a = tile.alloc_shared : !tile.shared<8x16xbf16, swizzle = 32>
  %x = tile.barrier_init 1 : !tile.barrier<2>
  %b = tile.alloc_shared : !tile.shared<96x64xbf16, swizzle = 128, stages = 2>
  %y = tile.barrier_init 1 : !tile.barrier<1>
  return
}

// What has an offset keeps it; the others come after it.
// CHECK-LABEL: func.func @given
func.func @given() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // CHECK: tile.alloc_shared at 0 : !tile.shared<64x64xbf16
  // CHECK: tile.alloc_shared at 16384 : !tile.shared<64x64xbf16
  // CHECK: tile.alloc_shared at 24576 : !tile.shared<64x64xf16
  %a = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %b = tile.alloc_shared at 16384 : !tile.shared<64x64xbf16, swizzle = 128>
  %c = tile.alloc_shared : !tile.shared<64x64xf16, swizzle = 128>
  return
}
