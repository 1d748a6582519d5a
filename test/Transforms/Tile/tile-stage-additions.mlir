// RUN: attn-opt %s --tile-stage-additions --split-input-file | FileCheck %s

#acc = #tile.acc<units = 2>
!t = tensor<128x64xf32, #acc>
!whole = memref<?x128x64xf32>
!part = memref<?x64xf32>

// All additions of a role go through one place, of which the role takes leave at the end. Outside of loops threads may wait, and what
// covers memory in part adds element by element.
// CHECK-LABEL: func.func @additions
// CHECK:         %[[PLACE:.*]] = tile.alloc_shared : !tile.shared<128x64xf32, swizzle = 128>
// CHECK-NOT:     tile.alloc_shared
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           tile.add_async %{{.*}} to %arg1[%[[I]], %c0, %c0] through %[[PLACE]] {tile.role = "consumer"}
// CHECK-NEXT:      tile.store {{.*}} {add, tile.role = "consumer"}
// CHECK:         scf.for %[[J:.*]] =
// CHECK:           tile.add_async %{{.*}} to %arg1[%[[J]], %c0, %c0] through %[[PLACE]] {tile.role = "consumer"}
// CHECK:         tile.store {{.*}} {add, tile.role = "consumer"}
// CHECK-NEXT:    tile.store_wait {tile.role = "consumer"}
// CHECK-NEXT:    return
func.func @additions(%x: f32, %o: !whole, %p: !part, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = []>,
    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>, #tile.role<name = "consumer", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.broadcast %x : f32 -> !t
  scf.for %i = %c0 to %n step %c1 {
    tile.store %t to %o[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !whole
    tile.store %t to %p[%i, %c0] {add, tile.role = "consumer"} : !t, !part
  }
  scf.for %i = %c0 to %n step %c1 {
    tile.store %t to %o[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !whole
  }
  tile.store %t to %o[%c0, %c0, %c0] {add, tile.role = "consumer"} : !t, !whole
  return
}

// -----

#acc = #tile.acc<units = 2>
!t = tensor<128x64xf32, #acc>
!tiles = memref<?x?x128x64xf32, strided<[?, 8192, 64, 1]>>
!rows = memref<?x?x128x64xf32, strided<[?, ?, ?, 1]>>

// Memory of the caller may lie at any multiple of an element, scratch lies at multiples of its tiles.
// CHECK-LABEL: func.func @strides
// CHECK:         tile.add_async %{{.*}} to %arg1
// CHECK:         tile.store %{{.*}} to %arg2
// CHECK:         tile.store %{{.*}} to %arg3
func.func @strides(%x: f32, %scratch: !tiles {tile.scratch = [2, 2, 128, 64]}, %o: !tiles, %p: !rows, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = []>,
    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>, #tile.role<name = "consumer", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.broadcast %x : f32 -> !t
  scf.for %i = %c0 to %n step %c1 {
    tile.store %t to %scratch[%i, %c0, %c0, %c0] {add, tile.role = "consumer"} : !t, !tiles
    tile.store %t to %o[%i, %c0, %c0, %c0] {add, tile.role = "consumer"} : !t, !tiles
    tile.store %t to %p[%i, %c0, %c0, %c0] {add, tile.role = "consumer"} : !t, !rows
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!t = tensor<128x64xf32, #acc>
!part = memref<?x96x64xf32>

// Memory in fragments may have fewer rows than the tile, other memory is added to by element then.
// CHECK-LABEL: func.func @rows
// CHECK:         tile.coord
// CHECK:         tile.add_async %{{.*}} to %arg1
// CHECK:         tile.store %{{.*}} to %arg2
func.func @rows(%x: f32, %fragments: !part {tile.fragments}, %o: !part, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = []>,
    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>, #tile.role<name = "consumer", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.broadcast %x : f32 -> !t
  scf.for %i = %c0 to %n step %c1 {
    // Where elements depend on where they are, threads do not add themselves.
    %position = tile.coord 1 from %i : tensor<128x64xindex, #acc>
    tile.store %t to %fragments[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !part
    tile.store %t to %o[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !part
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!t = tensor<128x64xf32, #acc>
!whole = memref<?x128x64xf32>

// Where shared memory is full, additions stay as they are.
// CHECK-LABEL: func.func @full
// CHECK-NOT:     tile.add_async
// CHECK-NOT:     tile.store_wait
func.func @full(%x: f32, %o: !whole, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = []>,
    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>, #tile.role<name = "consumer", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ring = tile.alloc_shared : !tile.shared<128x128xbf16, swizzle = 128, stages = 7>
  %t = tile.broadcast %x : f32 -> !t
  scf.for %i = %c0 to %n step %c1 {
    tile.store %t to %o[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !whole
  }
  return
}

// -----

#acc = #tile.acc<units = 2>
!t = tensor<128x64xf32, #acc>
!index = tensor<128x64xindex, #acc>
!tiles = memref<?x128x64xf32, strided<[8192, 64, 1]>>

// Threads that do little else add fragments themselves.
// CHECK-LABEL: func.func @fragments
// CHECK-NOT:     tile.add_async
// CHECK:         tile.store %{{.*}} {add
func.func @fragments(%x: f32, %o: !tiles {tile.fragments}, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = []>,
    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>, #tile.role<name = "consumer", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.broadcast %x : f32 -> !t
  scf.for %i = %c0 to %n step %c1 {
    tile.store %t to %o[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !tiles
  }
  return
}

// CHECK-LABEL: func.func @positions
// CHECK:         tile.add_async
func.func @positions(%x: f32, %o: !tiles {tile.fragments}, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = []>,
    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>, #tile.role<name = "consumer", warpgroups = 2, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %t = tile.broadcast %x : f32 -> !t
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero : f32 -> !t
  %last = tile.broadcast %c9 : index -> !index
  scf.for %i = %c0 to %n step %c1 {
    %row = tile.coord 0 from %i : !index
    %keep = arith.cmpi slt, %row, %last : !index
    %kept = arith.select %keep, %t, %zeros : tensor<128x64xi1, #acc>, !t
    tile.store %kept to %o[%i, %c0, %c0] {add, tile.role = "consumer"} : !t, !tiles
  }
  return
}
