// RUN: attn-opt %s --split-input-file --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s
// RUN: sed s/COLUMNS/8/g %S/Inputs/sum-diagonals.mlir | attn-opt --tile-allocate-shared --convert-tile-to-nvvm | %python %S/Inputs/run_threads.py sum_diagonals 8
// RUN: sed s/COLUMNS/24/g %S/Inputs/sum-diagonals.mlir | attn-opt --tile-allocate-shared --convert-tile-to-nvvm | %python %S/Inputs/run_threads.py sum_diagonals 24
// RUN: sed s/COLUMNS/128/g %S/Inputs/sum-diagonals.mlir | attn-opt --tile-allocate-shared --convert-tile-to-nvvm | %python %S/Inputs/run_threads.py sum_diagonals 128 | FileCheck %s --check-prefix=SUMS

// 64 rows are four times 16, each with a sum for its first row's columns and 15 that begin below.
// SUMS: sum_diagonals: 572 of 8192 elements are no zeros

#acc = #tile.acc<units = 1>

// A thread's second row is 8 below its first: what both have of a diagonal needs no exchange. Then three times each element of the
// first row, and of the second the first two columns, whose diagonals begin there.
// CHECK-LABEL: llvm.func @diagonals
// CHECK-COUNT-4:  llvm.fadd
// CHECK-COUNT-23: nvvm.shfl.sync idx
// CHECK-NOT:      nvvm.shfl
// CHECK:          llvm.return
func.func @diagonals(%x: f32, %o: memref<64x24xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<64x24xf32, #acc>
  %s = tile.sum_diagonals %t : tensor<64x24xf32, #acc>
  tile.store %s to %o[%zero, %zero] : tensor<64x24xf32, #acc>, memref<64x24xf32>
  return
}

// -----

#acc = #tile.acc<units = 1>

// Zeros are not added to memory: of 12 elements 7 may be sums.
// CHECK-LABEL:   llvm.func @added
// CHECK-COUNT-7: llvm.inline_asm has_side_effects {{.*}}red.relaxed.gpu.global.add.f32
// CHECK-NOT:     inline_asm
// CHECK:         llvm.return
func.func @added(%x: f32, %o: memref<?x?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<64x24xf32, #acc>
  %s = tile.sum_diagonals %t : tensor<64x24xf32, #acc>
  %m = tile.coord 0 from %zero : tensor<64x24xindex, #acc>
  %n = tile.coord 1 from %zero : tensor<64x24xindex, #acc>
  %none = arith.constant dense<0.0> : tensor<64x24xf32, #acc>
  %keep = arith.cmpf une, %s, %none : tensor<64x24xf32, #acc>
  tile.scatter_add %s to %o[%m, %n] where %keep : tensor<64x24xf32, #acc>, memref<?x?xf32>, tensor<64x24xindex, #acc>, tensor<64x24xindex, #acc>
  return
}
