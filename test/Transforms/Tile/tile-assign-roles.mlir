// RUN: attn-opt %s --tile-assign-roles | FileCheck %s

!global = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!wide_global = memref<?x256xbf16, strided<[?, 1]>>
!wide = !tile.shared<16x256xbf16, swizzle = 128>
!tile = !tile.shared<128x64xbf16, swizzle = 128>
#acc = #tile.acc<units = 2>

// Of two blocks on a multiprocessor each has half of the registers.
// CHECK-LABEL: func.func @resident
// CHECK-SAME:    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 40, elected = true>,
// CHECK-SAME:                  #tile.role<name = "consumer", warpgroups = 1, registers = 216>]
func.func @resident(%a: !global, %o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <resident = 2>>} {
  %c0 = arith.constant 0 : index
  %p = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  tile.copy %a[%c0, %c0] to %p : !global, !tile.shared<64x64xbf16, swizzle = 128>
  %s = tile.mma %p, %p {transpose_rhs} : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<units = 1>>
  tile.store %s to %o[%c0, %c0] : tensor<64x64xf32, #tile.acc<units = 1>>, !out
  return
}

// Who copies and who computes; values belong to whoever needs them.
// CHECK-LABEL: func.func @two_roles
// CHECK-SAME:    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>,
// CHECK-SAME:                  #tile.role<name = "consumer", warpgroups = 2, registers = 240>]
func.func @two_roles(%a: !global, %o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  // CHECK: tile.alloc_shared : !tile.shared
  %p = tile.alloc_shared : !tile
  // CHECK: tile.copy {{.*}} {tile.role = "producer"}
  tile.copy %a[%c0, %c0] to %p : !global, !tile
  // CHECK: tile.mma {{.*}} {tile.role = "consumer", transpose_rhs}
  %s = tile.mma %p, %p {transpose_rhs} : !tile, !tile -> tensor<128x128xf32, #acc>
  // CHECK: math.exp2 %{{[0-9]+}} : tensor
  %e = math.exp2 %s : tensor<128x128xf32, #acc>
  // CHECK: tile.store {{.*}} {tile.role = "consumer"}
  tile.store %e to %o[%c0, %c0] : tensor<128x128xf32, #acc>, !out
  // CHECK: tile.scatter_add {{.*}} {tile.role = "consumer"}
  %yes = arith.constant dense<true> : tensor<128x128xi1, #acc>
  tile.scatter_add %e to %o[%c0, %c0] where %yes : tensor<128x128xf32, #acc>, !out, index, index
  return
}

// Three warpgroups compute with fewer registers each.
// CHECK-LABEL: func.func @registers
// CHECK-SAME:    name = "producer", warpgroups = 1, registers = 32
// CHECK-SAME:    name = "consumer", warpgroups = 3, registers = 160
func.func @registers() attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  %p = tile.alloc_shared : !tile
  return
}

// A producer of blocks that stay needs more.
// CHECK-LABEL: func.func @staying
// CHECK-SAME:    name = "producer", warpgroups = 1, registers = 40
// CHECK-SAME:    name = "consumer", warpgroups = 2, registers = 232
func.func @staying() attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.multiprocessors<blocks = 1>]]>} {
  %p = tile.alloc_shared : !tile
  return
}

// So does one that copies tiles of more than two boxes and searches for the ends of its loops,
// CHECK-LABEL: func.func @searching
// CHECK-SAME:    name = "producer", warpgroups = 1, registers = 40
// CHECK-SAME:    name = "consumer", warpgroups = 2, registers = 232
func.func @searching(%a: !wide_global, %ids: memref<?xi32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %p = tile.alloc_shared : !wide
  %end = scf.while (%i = %c0) : (index) -> index {
    %id = memref.load %ids[%i] : memref<?xi32>
    %isBelow = arith.cmpi slt, %id, %zero : i32
    scf.condition(%isBelow) %i : index
  } do {
  ^bb0(%i: index):
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  scf.for %i = %c0 to %end step %c1 {
    tile.copy %a[%i, %c0] to %p : !wide_global, !wide
  }
  return
}

// or copies three of them where a condition says so. Two are what attention copies.
// CHECK-LABEL: func.func @three
// CHECK-SAME:    registers = 40
// CHECK-SAME:    registers = 232
func.func @three(%a: !wide_global, %end: index, %yes: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tile.alloc_shared : !wide
  scf.for %i = %c0 to %end step %c1 {
    scf.if %yes {
      tile.copy %a[%i, %c0] to %p : !wide_global, !wide
      tile.copy %a[%i, %c0] to %p : !wide_global, !wide
      tile.copy %a[%i, %c0] to %p : !wide_global, !wide
    }
  }
  return
}

// CHECK-LABEL: func.func @two
// CHECK-SAME:    registers = 24
// CHECK-SAME:    registers = 240
func.func @two(%a: !wide_global, %end: index, %yes: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tile.alloc_shared : !wide
  scf.for %i = %c0 to %end step %c1 {
    scf.if %yes {
      tile.copy %a[%i, %c0] to %p : !wide_global, !wide
      tile.copy %a[%i, %c0] to %p : !wide_global, !wide
    }
  }
  return
}

// What a kernel says of roles stays.
// CHECK-LABEL: func.func @named
// CHECK-SAME:    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
// CHECK-SAME:                  #tile.role<name = "scores", warpgroups = 1, registers = 200>,
// CHECK-SAME:                  #tile.role<name = "values", warpgroups = 1, registers = 200>]
func.func @named(%a: !global, %o: !out) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>,
                  #tile.role<name = "scores", warpgroups = 1, registers = 200>,
                  #tile.role<name = "values", warpgroups = 1, registers = 200>]} {
  %c0 = arith.constant 0 : index
  %p = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // CHECK: tile.copy {{.*}} {tile.role = "load"}
  tile.copy %a[%c0, %c0] to %p : !global, !tile.shared<64x64xbf16, swizzle = 128>
  // CHECK: tile.mma {{.*}} {tile.role = "scores"}
  %s = tile.mma %p, %p : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<units = 1>>
  // CHECK: tile.mma {{.*}} {tile.role = "values"}
  %t = tile.mma %p, %p {tile.role = "values"} : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<units = 1>>
  // CHECK: tile.store {{.*}} {tile.role = "values"}
  tile.store %t to %o[%c0, %c0] {tile.role = "values"} : tensor<64x64xf32, #tile.acc<units = 1>>, !out
  return
}

// Without places there is nothing to hand over: all warpgroups compute.
// CHECK-LABEL: func.func @no_places
// CHECK-NOT:     tile.role
func.func @no_places(%o: !out, %x: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<128x64xf32, #acc>
  tile.store %t to %o[%c0, %c0] : tensor<128x64xf32, #acc>, !out
  return
}

// All threads of the producer gather rows of pages that have no boxes, with more registers; what one consumer leaves is
// more than that.
// CHECK-LABEL: func.func @gathers
// CHECK-SAME:    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 40>,
// CHECK-SAME:                  #tile.role<name = "consumer", warpgroups = 2, registers = 232>]
func.func @gathers(%q: !global, %k: memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 2, page = 8>},
                   %table: memref<?x?xi32>, %o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %p = tile.alloc_shared : !tile
  %r = tile.alloc_shared : !tile
  // CHECK: tile.copy %arg0{{.*}} {tile.role = "producer"}
  tile.copy %q[%c0, %c0] to %p : !global, !tile
  // CHECK: tile.copy %arg1{{.*}} {tile.role = "producer"}
  tile.copy %k[%c0, %c0, %c0, %c0] to %r : memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>>, !tile
  // CHECK: tile.mma {{.*}} {tile.role = "consumer", transpose_rhs}
  %s = tile.mma %p, %r {transpose_rhs} : !tile, !tile -> tensor<128x128xf32, #acc>
  // CHECK: tile.store {{.*}} {tile.role = "consumer"}
  tile.store %s to %o[%c0, %c0] : tensor<128x128xf32, #acc>, !out
  return
}

// CHECK-LABEL: func.func @gathers_for_one
// CHECK-SAME:    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 240>,
// CHECK-SAME:                  #tile.role<name = "consumer", warpgroups = 1, registers = 240>]
func.func @gathers_for_one(%k: memref<?x1x?x64xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 1, page = 1>},
                           %table: memref<?x?xi32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  tile.copy %k[%c0, %c0, %c0, %c0] to %r : memref<?x1x?x64xbf16, strided<[?, ?, ?, 1]>>, !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// Pages of 16 keys have boxes.
// CHECK-LABEL: func.func @copies_boxes
// CHECK-SAME:    name = "producer", warpgroups = 1, registers = 24, elected = true
func.func @copies_boxes(%k: memref<?x16x?x64xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 1, page = 16>},
                        %table: memref<?x?xi32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %r = tile.alloc_shared : !tile
  tile.copy %k[%c0, %c0, %c0, %c0] to %r : memref<?x16x?x64xbf16, strided<[?, ?, ?, 1]>>, !tile
  return
}
