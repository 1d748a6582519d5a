// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s
// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm --emit-ptx="ptx=%t.ptx plan=%t.json" -o %t.mlir
// RUN: FileCheck %s --check-prefix=PTX < %t.ptx

// Memory of fragments: a warp's 16 rows are one piece of 16 * 64 * 4 = 4096 bytes, in which each lane has 16 bytes of each of 8 blocks of
// columns, 512 bytes apart.

#acc = #tile.acc<units = 1>
!memory = memref<?x64x64xf32>
!tile = tensor<64x64xf32, #acc>

// Each warp puts its rows into the place, in pieces of 16 bytes, and one of its lanes adds all of them at once: no tensor map.
// CHECK-LABEL: llvm.func @add_in_bulk
// CHECK-NOT:     llvm.byval
// CHECK:       nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:       nvvm.bar.warp.sync
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK-NOT:   llvm.store
// CHECK:       nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK:       nvvm.bar.warp.sync
// CHECK:       llvm.cond_br
// CHECK:       "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], 4096;"
// CHECK-NEXT:  nvvm.cp.async.bulk.commit.group
func.func @add_in_bulk(%x: f32, %o: !memory {tile.fragments}, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xf32, swizzle = 128>
  %t = tile.broadcast %x : f32 -> !tile
  tile.add_async %t to %o[%m, %zero, %zero] through %s : !tile, !memory, !tile.shared<64x64xf32, swizzle = 128>
  tile.store_wait
  return
}

// Without a place threads add themselves, what they have of a block at once.
// CHECK-LABEL: llvm.func @add
// CHECK-COUNT-8: "red.relaxed.gpu.global.add.v4.f32
// CHECK-NOT:   "red
func.func @add(%x: f32, %o: !memory {tile.fragments}, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> !tile
  tile.store %t to %o[%m, %zero, %zero] {add} : !tile, !memory
  return
}

// Memory may have fewer rows than the tile: warps that have others add nothing, and put nothing into the place.
// CHECK-LABEL: llvm.func @add_part
// CHECK-DAG:   %[[ROWS:.*]] = llvm.mlir.constant(3 : i32)
// CHECK:       %[[INSIDE:.*]] = llvm.icmp "ult" %{{.*}}, %{{.*}} : i32
// CHECK:       llvm.cond_br %[[INSIDE]], ^[[ADD:bb[0-9]+]], ^[[END:bb[0-9]+]]
// CHECK:     ^[[ADD]]:
// CHECK:       nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:       "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], 4096;"
// CHECK:       llvm.br ^[[END]]
// CHECK:       llvm.icmp "ult"
// CHECK:       llvm.cond_br
// CHECK-COUNT-8: "red.relaxed.gpu.global.add.v4.f32
func.func @add_part(%x: f32, %o: memref<?x48x64xf32> {tile.fragments}, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xf32, swizzle = 128>
  %t = tile.broadcast %x : f32 -> !tile
  tile.add_async %t to %o[%m, %zero, %zero] through %s : !tile, memref<?x48x64xf32>, !tile.shared<64x64xf32, swizzle = 128>
  tile.store_wait
  tile.store %t to %o[%m, %zero, %zero] {add} : !tile, memref<?x48x64xf32>
  return
}

// Element (row, column): row / 16 * 1024 + column / 8 * 128 + row % 8 * 16 + column % 8 / 2 * 4 + row / 8 % 2 * 2 + column % 2. Which lane
// and register have it is what #tile.acc says: lane row % 8 * 4 + column % 8 / 2, register column / 8 * 4 + row / 8 % 2 * 2 + column % 2.
// PTX-LABEL: .entry gather
func.func @gather(%o: !memory {tile.fragments}, %to: memref<?x64xf32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c13 = arith.constant 13 : index
  %c29 = arith.constant 29 : index
  %c63 = arith.constant 63 : index
  // 0 + 0 + 0 + 0 + 0 + 0
  // CHECK-DAG: %[[A:.*]] = llvm.mlir.constant(0 : i32)
  // PTX-DAG: ld.global.b32 {{.*}}, [%{{rd[0-9]+}}];
  %0 = tile.gather %o[%m, %c0, %c0] : !memory, index, index, index -> !tile
  // 0 + 128 + 16 + 8 + 0 + 1
  // CHECK-DAG: %[[B:.*]] = llvm.mlir.constant(153 : i32)
  // PTX-DAG: ld.global.b32 {{.*}}, [%{{rd[0-9]+}}+612];
  %1 = tile.gather %o[%m, %c1, %c13] : !memory, index, index, index -> !tile
  // 1024 + 0 + 80 + 0 + 2 + 1
  // CHECK-DAG: %[[C:.*]] = llvm.mlir.constant(1107 : i32)
  // PTX-DAG: ld.global.b32 {{.*}}, [%{{rd[0-9]+}}+4428];
  %2 = tile.gather %o[%m, %c29, %c1] : !memory, index, index, index -> !tile
  // 3072 + 896 + 112 + 12 + 2 + 1: the last of 4096
  // CHECK-DAG: %[[D:.*]] = llvm.mlir.constant(4095 : i32)
  // PTX-DAG: ld.global.b32 {{.*}}, [%{{rd[0-9]+}}+16380];
  %3 = tile.gather %o[%m, %c63, %c63] : !memory, index, index, index -> !tile
  %4 = arith.addf %0, %1 : !tile
  %5 = arith.addf %2, %3 : !tile
  %6 = arith.addf %4, %5 : !tile
  tile.store %6 to %to[%c0, %c0] : !tile, memref<?x64xf32>
  return
}
