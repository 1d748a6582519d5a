// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

// A kernel may have any name, that of shared memory too, which then has another.
// CHECK: llvm.mlir.global external @[[SHARED:attn_shared_[0-9]+]]() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-NOT: llvm.mlir.global
// CHECK-LABEL: llvm.func @first(
// CHECK: llvm.mlir.addressof @[[SHARED]]
func.func @first() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %b = tile.barrier_init 1 at 0 : !tile.barrier<1>
  tile.barrier_wait %b : !tile.barrier<1>
  return
}

// CHECK-LABEL: llvm.func @attn_shared(
// CHECK: llvm.mlir.addressof @[[SHARED]]
func.func @attn_shared() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %b = tile.barrier_init 1 at 0 : !tile.barrier<1>
  tile.barrier_wait %b : !tile.barrier<1>
  return
}
