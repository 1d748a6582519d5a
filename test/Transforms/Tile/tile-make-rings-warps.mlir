// Where warps multiply, each of them gives a stage back: four arrive for a warpgroup, eight for two.
// RUN: attn-opt %s --tile-make-rings | FileCheck %s

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>

module attributes {plan.target = #plan.target<"sm_120a">} {

// CHECK-LABEL: func.func @one_warpgroup
// CHECK:         tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK:         tile.barrier_init 1 : !tile.barrier<2>
// CHECK:         %[[EMPTY:.*]] = tile.barrier_init 4 : !tile.barrier<2>
func.func @one_warpgroup(%k: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ks = tile.alloc_shared : !tile
  scf.for %i = %c0 to %n step %c64 {
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"} : !global, !tile
    // CHECK: tile.mma
    // CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][{{.*}}] {tile.role = "compute"}
    %s = tile.mma %ks, %ks {tile.role = "compute", transpose_rhs}
        : !tile, !tile -> tensor<64x64xf32, #tile.acc<units = 4, product = "mma.sync">>
  }
  return
}

// What threads write for a product of warps needs no fence: they read it themselves.
// CHECK-LABEL: func.func @two_warpgroups
// CHECK:         tile.barrier_init 8 : !tile.barrier<2>
// CHECK-NOT:     tile.fence
func.func @two_warpgroups(%k: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "compute", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %ks = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128>
  %ss = tile.alloc_shared : !tile.shared<128x128xbf16, swizzle = 128>
  scf.for %i = %c0 to %n step %c128 {
    tile.copy %k[%i, %c0] to %ks {tile.role = "load"}
        : !global, !tile.shared<128x64xbf16, swizzle = 128>
    %s = tile.mma %ks, %ks {tile.role = "compute", transpose_rhs}
        : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<128x64xbf16, swizzle = 128>
        -> tensor<128x128xf32, #tile.acc<units = 8, product = "mma.sync">>
    %h = arith.truncf %s : tensor<128x128xf32, #tile.acc<units = 8, product = "mma.sync">>
        to tensor<128x128xbf16, #tile.acc<units = 8, product = "mma.sync">>
    tile.store %h to %ss {tile.role = "compute"}
        : tensor<128x128xbf16, #tile.acc<units = 8, product = "mma.sync">>,
          !tile.shared<128x128xbf16, swizzle = 128>
    %t = tile.mma %ss, %ks {tile.role = "compute"}
        : !tile.shared<128x128xbf16, swizzle = 128>, !tile.shared<128x64xbf16, swizzle = 128>
        -> tensor<128x64xf32, #tile.acc<units = 8, product = "mma.sync">>
  }
  return
}

}
