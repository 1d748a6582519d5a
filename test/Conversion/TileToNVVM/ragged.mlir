// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm --split-input-file | FileCheck %s

// The rows of sequence b begin at offsets[b] of (T, H, ...): loads and stores keep to rows that it has.

#row = #tile.row<#tile.acc<units = 1>>

// CHECK-LABEL: llvm.func @store
// CHECK-SAME:    %{{[a-z0-9]*}}: !llvm.ptr<1>, %[[T:[a-z0-9]*]]: i32, %{{[a-z0-9]*}}: i64, %[[OFFSETS:[a-z0-9]*]]: !llvm.ptr<1>, %[[STRIDE:[a-z0-9]*]]: i64, %[[M:[a-z0-9]*]]: i32,
func.func @store(%lse: memref<?x?xf32, strided<[?, 1]>> {plan.ragged = #plan.ragged<offsets = 1, most = 2, dim = 0>},
                 %offsets: memref<?xi64, strided<[?]>>, %most: memref<?xi8, strided<[?]>>, %x: f32, %b: index, %h: index,
                 %m: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // Offsets are clamped before they are narrowed.
  // CHECK: %[[TOTAL:.*]] = llvm.sext %[[T]] : i32 to i64
  // CHECK: %[[A:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> i64
  // CHECK: %[[LEAST:.*]] = llvm.intr.smax(%[[A]], %{{.*}})
  // CHECK: %[[BEGIN:.*]] = llvm.intr.smin(%[[LEAST]], %[[TOTAL]])
  // CHECK: %[[FIRST:.*]] = llvm.trunc %[[BEGIN]] : i64 to i32
  // CHECK: %[[B:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> i64
  // CHECK: %[[FROM:.*]] = llvm.intr.smax(%[[B]], %{{.*}})
  // CHECK: %[[NEXT:.*]] = llvm.intr.smin(%[[FROM]], %[[TOTAL]])
  // CHECK: %[[AT:.*]] = llvm.trunc %[[NEXT]] : i64 to i32
  // CHECK: %[[END:.*]] = llvm.intr.smax(%[[AT]], %[[FIRST]])
  // CHECK: %[[COUNT:.*]] = llvm.sub %[[END]], %[[FIRST]] : i32
  // CHECK: %[[ROWS:.*]] = llvm.intr.smin(%[[COUNT]], %[[M]])
  // CHECK: llvm.add %[[FIRST]], %{{.*}} : i32
  // CHECK: llvm.sub %[[ROWS]], %{{.*}} : i32
  // CHECK: llvm.icmp "sgt"
  // CHECK: llvm.store
  %r = tile.broadcast %x : f32 -> tensor<64xf32, #row>
  tile.store %r to %lse[%b, %h, %m] : tensor<64xf32, #row>, memref<?x?xf32, strided<[?, 1]>>
  return
}

// -----

// A box begins in the sequence. The map's dimensions are column, row, head.
// CHECK-LABEL: llvm.func @copy
// CHECK-SAME:    tile.plan = {{.*}}box = [64, 64, 1]{{.*}}dims = [2, 0, 1]
// CHECK:         %[[BEGIN:.*]] = llvm.intr.smin
// CHECK:         llvm.intr.smin
// CHECK:         %[[ROW:.*]] = llvm.add %[[BEGIN]], %{{.*}} : i32
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %[[ROW]], %{{.*}}]
func.func @copy(%q: memref<?x?x64xbf16, strided<[?, ?, 1]>> {plan.ragged = #plan.ragged<offsets = 1, most = 2, dim = 0>},
                %offsets: memref<?xi32, strided<[?]>>, %most: memref<?xi8, strided<[?]>>, %b: index, %h: index,
                %m: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.copy_async %q[%b, %h, %m, %zero] to %s signal %full
      : memref<?x?x64xbf16, strided<[?, ?, 1]>>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.barrier<1>
  return
}

// -----

// Packed beside it: heads within rows, from the sequence's first row on.
// CHECK-LABEL: llvm.func @packed
// CHECK-SAME:    tile.plan = {{.*}}box = [64, 8, 8]{{.*}}dims = [2, 1, 0]
// CHECK:         %[[BEGIN:.*]] = llvm.intr.smin
// CHECK:         %[[IN:.*]] = llvm.lshr
// CHECK:         %[[ROW:.*]] = llvm.add %[[BEGIN]], %[[IN]] : i32
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}, %[[ROW]]]
func.func @packed(%q: memref<?x?x64xbf16, strided<[?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 3>,
                                                               plan.ragged = #plan.ragged<offsets = 1, most = 2, dim = 0>},
                  %offsets: memref<?xi32, strided<[?]>>, %most: memref<?xi8, strided<[?]>>,
                  %k: memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, %b: index, %h: index,
                  %m: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.copy_async %q[%b, %h, %m, %zero] to %s signal %full
      : memref<?x?x64xbf16, strided<[?, ?, 1]>>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.barrier<1>
  return
}
