// RUN: attn-opt %s --tile-keep-operands --split-input-file | FileCheck %s

!global = memref<?x128xbf16, strided<[?, 1]>>
!rows = !tile.shared<128x128xbf16, swizzle = 128>
!result = tensor<128x128xf32, #tile.acc<units = 2>>

// The first columns of what a loop does not change are loaded in front of the first product that reads them, also one in front of the
// loop. What the loop fills stays where it is.
// CHECK-LABEL: func.func @query
// CHECK:         %[[Q:.*]] = tile.alloc_shared
// CHECK:         %[[K:.*]] = tile.alloc_shared
// CHECK:         tile.copy %{{.*}} to %[[Q]]
// CHECK:         tile.copy %{{.*}} to %[[K]]
// CHECK-NEXT:    %[[KEPT:.*]] = tile.load_shared %[[Q]] : {{.*}} -> tensor<128x48xbf16, #tile.operand_a<units = 2>>
// CHECK-NEXT:    tile.mma %[[Q]], %[[K]] kept %[[KEPT]] {transpose_rhs} : {{.*}} kept tensor<128x48xbf16, #tile.operand_a<units = 2>> -> tensor
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      tile.copy
// CHECK-NEXT:      tile.mma %[[Q]], %[[K]] kept %[[KEPT]] {transpose_rhs}
// CHECK-NEXT:      tile.mma %[[K]], %[[Q]] {transpose_rhs} : {{[^k]*}} ->
func.func @query(%q: !global, %k: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 48>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  %ks = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  tile.copy %k[%c0, %c0] to %ks : !global, !rows
  %first = tile.mma %qs, %ks {transpose_rhs} : !rows, !rows -> !result
  scf.for %i = %c128 to %n step %c128 {
    tile.copy %k[%i, %c0] to %ks : !global, !rows
    %s = tile.mma %qs, %ks {transpose_rhs} : !rows, !rows -> !result
    %t = tile.mma %ks, %qs {transpose_rhs} : !rows, !rows -> !result
  }
  return
}

// -----

!global = memref<?x32xbf16, strided<[?, 1]>>
!rows = !tile.shared<128x32xbf16, swizzle = 64>
!result = tensor<128x128xf32, #tile.acc<units = 2>>

// Blocks that stay load another tile in each turn of the outer loop. An operand of fewer columns is kept whole.
// CHECK-LABEL: func.func @stays
// CHECK:         scf.for
// CHECK-NEXT:      tile.copy
// CHECK-NEXT:      %[[KEPT:.*]] = tile.load_shared %{{.*}} -> tensor<128x32xbf16, #tile.operand_a<units = 2>>
// CHECK-NEXT:      scf.for
// CHECK:             tile.mma {{.*}} kept %[[KEPT]]
func.func @stays(%q: !global, %k: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 96>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  %ks = tile.alloc_shared : !rows
  scf.for %m = %c0 to %n step %c128 {
    tile.copy %q[%m, %c0] to %qs : !global, !rows
    scf.for %i = %c0 to %n step %c128 {
      tile.copy %k[%i, %c0] to %ks : !global, !rows
      %s = tile.mma %qs, %ks {transpose_rhs} : !rows, !rows -> !result
    }
  }
  return
}

// -----

!global = memref<?x128xbf16, strided<[?, 1]>>
!rows = !tile.shared<128x128xbf16, swizzle = 128>
!result = tensor<128x128xf32, #tile.acc<units = 2>>

// A product without a loop, a transposed operand, and a kernel that keeps nothing.
// CHECK-LABEL: func.func @once
// CHECK-NOT:     tile.load_shared
func.func @once(%q: !global) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 48>>} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  %s = tile.mma %qs, %qs {transpose_rhs} : !rows, !rows -> !result
  return
}

// CHECK-LABEL: func.func @transposed
// CHECK-NOT:     tile.load_shared
func.func @transposed(%q: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 48>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  scf.for %i = %c0 to %n step %c128 {
    %s = tile.mma %qs, %qs {transpose_lhs} : !rows, !rows -> !result
  }
  return
}

// A place that the loop fills behind the product has other columns in the next turn.
// CHECK-LABEL: func.func @behind
// CHECK-NOT:     tile.load_shared
func.func @behind(%q: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 48>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  scf.for %i = %c0 to %n step %c128 {
    %s = tile.mma %qs, %qs {transpose_rhs} : !rows, !rows -> !result
    tile.copy %q[%i, %c0] to %qs : !global, !rows
  }
  return
}

// So has one that is filled under a condition.
// CHECK-LABEL: func.func @perhaps
// CHECK-NOT:     tile.load_shared
func.func @perhaps(%q: !global, %n: index, %more: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 48>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  scf.if %more {
    tile.copy %q[%c128, %c0] to %qs : !global, !rows
  }
  scf.for %i = %c0 to %n step %c128 {
    %s = tile.mma %qs, %qs {transpose_rhs} : !rows, !rows -> !result
  }
  return
}

// CHECK-LABEL: func.func @nothing
// CHECK-NOT:     tile.load_shared
func.func @nothing(%q: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  scf.for %i = %c0 to %n step %c128 {
    %s = tile.mma %qs, %qs {transpose_rhs} : !rows, !rows -> !result
  }
  return
}

// -----

!global = memref<?x31xbf16, strided<[?, 1]>>
!rows = !tile.shared<128x31xbf16, swizzle = 64>
!result = tensor<128x128xf32, #tile.acc<units = 2>>

// Columns are kept by whole steps of a product, of 16.
// CHECK-LABEL: func.func @steps
// CHECK:         %[[KEPT:.*]] = tile.load_shared %{{.*}} -> tensor<128x16xbf16, #tile.operand_a<units = 2>>
// CHECK:         tile.mma {{.*}} kept %[[KEPT]]
func.func @steps(%q: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 96>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  scf.for %i = %c0 to %n step %c128 {
    %s = tile.mma %qs, %qs {transpose_rhs} : !rows, !rows -> !result
  }
  return
}

// -----

!global = memref<?x8xbf16, strided<[?, 1]>>
!rows = !tile.shared<128x8xbf16, swizzle = 32>
!result = tensor<128x128xf32, #tile.acc<units = 2>>

// CHECK-LABEL: func.func @no_step
// CHECK-NOT:     tile.load_shared
func.func @no_step(%q: !global, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <keep = 96>>} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %qs = tile.alloc_shared : !rows
  tile.copy %q[%c0, %c0] to %qs : !global, !rows
  scf.for %i = %c0 to %n step %c128 {
    %s = tile.mma %qs, %qs {transpose_rhs} : !rows, !rows -> !result
  }
  return
}
