// RUN: attn-opt %s --tile-make-rings | FileCheck %s

!q = memref<?x64xbf16, strided<[?, 1]>>
!pool = memref<?x1x?x64xbf16, strided<[?, ?, ?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
!half = tensor<64x64xbf16, #tile.acc<units = 1>>
!a = tensor<64x64xbf16, #tile.operand_a<units = 1>>

// Rows of pages of one are gathered by all threads of the role. They ask the table before they wait for the stage, arrive
// as the rows land, and go on. Who reads them fences, once for both products.
// CHECK-LABEL: func.func @gathered
// CHECK:         tile.barrier_init 1 : !tile.barrier<1>
// CHECK:         %[[K:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
// CHECK:         %[[FULL:.*]] = tile.barrier_init 128 : !tile.barrier<2>
// CHECK:         %[[EMPTY:.*]] = tile.barrier_init 1 : !tile.barrier<2>
func.func @gathered(%q: !q, %k: !pool {plan.paged = #plan.paged<table = 2, page = 1>}, %table: memref<?x?xi32>, %n: index)
    attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 40>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !tile
  // One thread of the role copies the box.
  // CHECK: tile.barrier_expect %{{.*}} bytes 8192 {tile.role = "load"}
  // CHECK: tile.copy_async {{.*}} {tile.role = "load"}
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !q, !tile
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c64 {
    // CHECK-NEXT: %[[ROWS:.*]] = tile.find_rows %arg1[%[[C0:.*]], %[[C0]], %[[N:.*]], %[[C0]]] {tile.role = "load"} : {{.*}} -> !tile.rows<64, warps = 4>
    // CHECK-NEXT: tile.barrier_wait previous %[[EMPTY]][%[[FILL:.*]]] {tile.role = "load"}
    // CHECK-NEXT: %[[INTO:.*]] = tile.stage %[[K]][%[[FILL]]]
    // CHECK-NEXT: tile.gather_async %arg1[%[[C0]], %[[C0]], %[[N]], %[[C0]]] at %[[ROWS]] to %[[INTO]] {tile.role = "load"}
    // CHECK-NEXT: tile.arrive_landed %[[FULL]][%[[FILL]]] {tile.role = "load"}
    // CHECK-NEXT: tile.next %[[FILL]]
    tile.copy %k[%c0, %c0, %i, %c0] to %ks {tile.role = "load"} : !pool, !tile
    // CHECK: tile.barrier_wait %[[FULL]][%[[READ:.*]]] {tile.role = "compute"}
    // CHECK-NEXT: tile.fence async_shared {tile.role = "compute"}
    // CHECK: tile.mma {{.*}} {tile.role = "compute", transpose_rhs}
    // CHECK-NOT: tile.fence
    %s = tile.mma %qs, %ks {tile.role = "compute", transpose_rhs} : !tile, !tile -> !result
    %h = arith.truncf %s : !result to !half
    %a = tile.convert_layout %h : !half -> !a
    // CHECK: tile.mma {{.*}} {tile.role = "compute"}
    // CHECK-NEXT: tile.barrier_arrive %[[EMPTY]][%[[READ]]] {tile.role = "compute"}
    %t = tile.mma %a, %ks {tile.role = "compute"} : !a, !tile -> !result
  }
  return
}
