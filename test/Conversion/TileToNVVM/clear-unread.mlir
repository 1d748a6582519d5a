// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

#acc = #tile.acc<units = 2>
!values = !tile.shared<112x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>

// 112 columns are 14 pairs for each of the lanes that share a row: a carry for each, then one exchange among the warp's rows.
// CHECK-LABEL: llvm.func @mark_read
func.func @mark_read(%x: bf16) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %p = tile.broadcast %x : bf16 -> tensor<128x112xbf16, #acc>
  %marks = tile.alloc_shared : !marks
  // CHECK-COUNT-14: llvm.add %{{.*}}, %[[MAGNITUDE:.*]] : i32
  // CHECK-COUNT-3: nvvm.shfl.sync  bfly
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  tile.mark_read %p to %marks : tensor<128x112xbf16, #acc>, !marks
  return
}

// A thread for each row asks the eight warps about its column; a row of the only slab is eight times 16 bytes.
// CHECK-LABEL: llvm.func @clear_unread
func.func @clear_unread() attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %values = tile.alloc_shared : !values
  %marks = tile.alloc_shared : !marks
  // CHECK: llvm.icmp "ult"
  // CHECK: llvm.cond_br
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
  // CHECK-NOT: llvm.load
  // CHECK: llvm.icmp "eq"
  // CHECK: llvm.cond_br
  // CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  tile.clear_unread %values by %marks : !values, !marks
  return
}

// From a row on, nobody is asked.
// CHECK-LABEL: llvm.func @clear_from
func.func @clear_from(%n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %values = tile.alloc_shared : !values
  // CHECK-NOT: llvm.load
  // CHECK: llvm.icmp "ult"
  // CHECK: llvm.cond_br
  // CHECK: llvm.icmp "uge"
  // CHECK: llvm.cond_br
  // CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK-NOT: llvm.store
  tile.clear_unread %values from %n : !values
  return
}
