// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// Rows of a packed argument are heads: row m * 8 + j is row m of head j of the group.

#row = #tile.row<#tile.acc<units = 1>>

// CHECK-LABEL: llvm.func @store
// CHECK-SAME:    %{{[a-z0-9]*}}: !llvm.ptr<1>, %[[HEADS:[a-z0-9]*]]: i32, %[[M:[a-z0-9]*]]: i32, %{{[a-z0-9]*}}: i64, %{{[a-z0-9]*}}: i64, %[[KEYHEADS:[a-z0-9]*]]: i32,
func.func @store(%lse: memref<?x?x?xf32, strided<[?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 1>},
                 %k: memref<?x?x?x64xbf16>, %x: f32, %b: index, %h: index, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // CHECK: %[[GROUP:.*]] = llvm.udiv %[[HEADS]], %[[KEYHEADS]] : i32
  // CHECK: llvm.mul %{{.*}}, %[[GROUP]] : i32
  // CHECK: %[[ROW:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
  // CHECK: %[[HEAD:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
  // CHECK: llvm.icmp "slt" %[[ROW]], %[[M]]
  // CHECK: llvm.icmp "slt" %[[HEAD]], %[[GROUP]]
  // CHECK: llvm.cond_br
  // CHECK: llvm.store
  %r = tile.broadcast %x : f32 -> tensor<64xf32, #row>
  tile.store %r to %lse[%b, %h, %m] : tensor<64xf32, #row>, memref<?x?x?xf32, strided<[?, ?, 1]>>
  return
}

// A box has heads within rows. The map's dimensions are in that order; the plan says so.
// CHECK-LABEL: llvm.func @copy
// CHECK-SAME:    tile.plan = {{.*}}box = [64, 8, 8, 1]{{.*}}dims = [3, 1, 2, 0]
func.func @copy(%q: memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 1>},
                %k: memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, %b: index, %h: index, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  // CHECK: %[[GROUP:.*]] = llvm.udiv
  // CHECK: llvm.mul %{{.*}}, %[[GROUP]] : i32
  // CHECK: llvm.lshr
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
  tile.copy_async %q[%b, %h, %m, %zero] to %s signal %full
      : memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.barrier<1>
  return
}
