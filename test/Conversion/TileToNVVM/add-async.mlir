// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// Each warp puts its rows into the place when what it added before has been read, in pieces of 8 bytes, and one of its lanes adds them by
// slabs. Nobody meets but the lanes.

#acc = #tile.acc<units = 1>

// CHECK-LABEL: llvm.func @add
// CHECK-SAME:    %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval
func.func @add(%x: f32, %o: memref<?x64x64xf32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x64xf32, swizzle = 128>
  %t = tile.broadcast %x : f32 -> tensor<64x64xf32, #acc>
  // CHECK:       nvvm.cp.async.bulk.wait_group 0 {read}
  // CHECK-NEXT:  %[[ALL:.*]] = llvm.mlir.constant(-1 : i32)
  // CHECK-NEXT:  nvvm.bar.warp.sync %[[ALL]]
  // CHECK-COUNT-16: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
  // CHECK-NOT:   llvm.store
  // CHECK:       nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
  // CHECK:       nvvm.bar.warp.sync
  // CHECK:       llvm.cond_br
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.reduce {{.*}} {redKind = #nvvm.tma_redux_kind<add>}
  // CHECK-NOT:   nvvm.cp.async.bulk.tensor.reduce
  // CHECK:       nvvm.cp.async.bulk.commit.group
  tile.add_async %t to %o[%m, %zero, %zero] through %s
      : tensor<64x64xf32, #acc>, memref<?x64x64xf32>, !tile.shared<64x64xf32, swizzle = 128>
  // CHECK:       nvvm.cp.async.bulk.wait_group 0 {read}
  tile.store_wait
  return
}
