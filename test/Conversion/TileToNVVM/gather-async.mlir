// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// Lanes ask for the sixteen rows of their warp, and keep a row's distance from the start of the pool, or -1.
// CHECK-LABEL: llvm.func @rows_of_a_warp
// CHECK-SAME:    %[[K:[a-z0-9]*]]: !llvm.ptr<1>, %[[PAGES:[a-z0-9]*]]: i32, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %[[TABLE:[a-z0-9]*]]: !llvm.ptr<1>, %[[C:[a-z0-9]*]]: i32
// CHECK-NOT:     tensor_map
// CHECK:         llvm.icmp "ult" %{{.*}}, %[[C]]
// CHECK:         llvm.getelementptr %[[TABLE]]
// CHECK:         %[[PAGE:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK:         %[[IN_POOL:.*]] = llvm.icmp "ult" %{{.*}}, %[[PAGES]]
// CHECK:         llvm.urem
// CHECK:         %[[DISTANCE:.*]] = llvm.select %[[IN_POOL]], %{{.*}}, %{{.*}} : i1, i64
// CHECK-NOT:     llvm.load
// Eight lanes copy a row, so that a warp copies four at a time, in four turns. The lanes of a row have its distance from one
// of them: other segments of eight lanes are out of reach.
// CHECK:         %[[REACH:.*]] = llvm.mlir.constant(6175 : i32) : i32
// CHECK:         llvm.trunc %[[DISTANCE]] : i64 to i32
// CHECK:         nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %{{.*}}, %[[REACH]]
// CHECK-COUNT-7: nvvm.shfl.sync idx
// CHECK-NOT:     nvvm.shfl.sync
// CHECK:         %[[EXISTS:.*]] = llvm.icmp "sge"
// CHECK:         %[[BYTES:.*]] = llvm.select %[[EXISTS]], %{{.*}}, %{{.*}} : i1, i32
// CHECK:         %[[SAFE:.*]] = llvm.select %[[EXISTS]], %{{.*}}, %{{.*}} : i1, i64
// CHECK:         %[[FROM:.*]] = llvm.getelementptr %{{.*}}[%[[SAFE]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK:         nvvm.cp.async.shared.global %{{.*}}, %[[FROM]], 16, cache =  cg, %[[BYTES]]
// CHECK-COUNT-3: nvvm.cp.async.shared.global
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
func.func @rows_of_a_warp(
    %k: memref<?x5x?x64xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 1, page = 5>},
    %table: memref<?x?xi32, strided<[?, 1]>>, %b: index, %h: index, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %full = tile.barrier_init 128 : !tile.barrier<1>
  tile.sync
  %rows = tile.find_rows %k[%b, %h, %n, %zero] : memref<?x5x?x64xbf16, strided<[?, ?, ?, 1]>> -> !tile.rows<64, warps = 4>
  tile.gather_async %k[%b, %h, %n, %zero] at %rows to %s
      : memref<?x5x?x64xbf16, strided<[?, ?, ?, 1]>>, !tile.rows<64, warps = 4>, !tile.shared<64x64xbf16, swizzle = 128>
  tile.arrive_landed %full : !tile.barrier<1>
  return
}

// Rows of ten pieces, one of which is padding, take sixteen lanes, of which ten copy, in twenty turns. A lane asks for two
// rows: the rows of a segment are more than its lanes.
// CHECK-LABEL: llvm.func @odd_rows
// CHECK:         %[[D:.*]] = llvm.mlir.constant(72 : i32) : i32
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<1> -> i64
// CHECK:         %[[HAS_COLUMN:.*]] = llvm.icmp "ult" %{{.*}}, %[[D]]
// CHECK:         llvm.and %{{.*}}, %[[HAS_COLUMN]]
// CHECK:         %[[TEN:.*]] = llvm.mlir.constant(10 : i32) : i32
// CHECK:         %[[HAS_PIECE:.*]] = llvm.icmp "ult" %{{.*}}, %[[TEN]]
// CHECK:         llvm.cond_br %[[HAS_PIECE]]
// CHECK:         nvvm.cp.async.shared.global
// CHECK-COUNT-19: nvvm.cp.async.shared.global
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.mbarrier.arrive
func.func @odd_rows(
    %k: memref<?x1x?x72xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 1, page = 1>},
    %table: memref<?x?xi64, strided<[?, ?]>>, %b: index, %h: index, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<160x80xbf16, swizzle = 32>
  %full = tile.barrier_init 128 : !tile.barrier<1>
  tile.sync
  %rows = tile.find_rows %k[%b, %h, %n, %zero] : memref<?x1x?x72xbf16, strided<[?, ?, ?, 1]>> -> !tile.rows<160, warps = 4>
  tile.gather_async %k[%b, %h, %n, %zero] at %rows to %s
      : memref<?x1x?x72xbf16, strided<[?, ?, ?, 1]>>, !tile.rows<160, warps = 4>, !tile.shared<160x80xbf16, swizzle = 32>
  tile.arrive_landed %full : !tile.barrier<1>
  return
}
