// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// A tile of 128 keys is two boxes of one page each, for either half of the columns. The map's dimensions are column,
// row of a page, head, page; the thread that copies reads the table, where it has an entry.
// CHECK-LABEL: llvm.func @copy
// CHECK-SAME:    %[[K:[a-z0-9]*]]: !llvm.ptr {{.*}}, %[[TABLE:[a-z0-9]*]]: !llvm.ptr<1>, %[[C:[a-z0-9]*]]: i32, %[[STRIDE:[a-z0-9]*]]: i64,
// CHECK-SAME:    tile.plan = {{.*}}box = [64, 64, 1, 1]{{.*}}dims = [3, 1, 2, 0]
// CHECK:         %[[ENTRY:.*]] = llvm.udiv %[[ROW:.*]], %{{.*}} : i32
// CHECK:         llvm.icmp "ult" %[[ENTRY]], %[[C]]
// CHECK:         llvm.mul %{{.*}}, %[[STRIDE]] : i64
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[TABLE]]
// CHECK:         llvm.load %[[PLACE]] : !llvm.ptr<1> -> i32
// CHECK:         %[[IN:.*]] = llvm.urem %[[ROW]], %{{.*}} : i32
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %[[IN]], %{{.*}}, %[[PAGE:.*]]]
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %[[IN]], %{{.*}}, %[[PAGE]]]
// CHECK:         llvm.udiv
// CHECK:         llvm.load
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT:     nvvm.cp.async.bulk.tensor
func.func @copy(%k: memref<?x64x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 1, page = 64>},
                %table: memref<?x?xi32, strided<[?, 1]>>, %b: index, %h: index, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<128x128xbf16, swizzle = 128>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.copy_async %k[%b, %h, %n, %zero] to %s signal %full
      : memref<?x64x?x128xbf16, strided<[?, ?, ?, 1]>>, !tile.shared<128x128xbf16, swizzle = 128>, !tile.barrier<1>
  return
}
