// RUN: attn-opt %s --tile-skip-factors | FileCheck %s

#acc = #tile.acc<units = 4, product = "mma.sync">
#row = #tile.row<#acc>

module attributes {plan.target = #plan.target<"sm_80">} {

// CHECK-LABEL: func.func @scaled
// CHECK:         %[[SOME:.*]] = tile.any_row %arg1
// CHECK-NEXT:    scf.if %[[SOME]]
// CHECK-NEXT:      %[[PRODUCT:.*]] = arith.mulf
// CHECK-NEXT:      %[[SUM:.*]] = arith.select %{{.*}}, %[[PRODUCT]], %arg0
// CHECK-NEXT:      scf.yield %[[SUM]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %arg0
func.func @scaled(%sum: tensor<64x64xf32, #acc>, %raised: tensor<64xi1, #row>, %factor: tensor<64xf32, #row>, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %factors = tile.broadcast %factor : tensor<64xf32, #row> -> tensor<64x64xf32, #acc>
  %rows = tile.broadcast %raised : tensor<64xi1, #row> -> tensor<64x64xi1, #acc>
  %product = arith.mulf %sum, %factors : tensor<64x64xf32, #acc>
  %next = arith.select %rows, %product, %sum : tensor<64x64xi1, #acc>, tensor<64x64xf32, #acc>
  tile.store %next to %o[%c0, %c0] : tensor<64x64xf32, #acc>, memref<?x64xf32>
  return
}

// A selection of something else stays.
// CHECK-LABEL: func.func @other
// CHECK-NOT:     tile.any_row
func.func @other(%sum: tensor<64x64xf32, #acc>, %raised: tensor<64xi1, #row>, %other: tensor<64x64xf32, #acc>, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %rows = tile.broadcast %raised : tensor<64xi1, #row> -> tensor<64x64xi1, #acc>
  %product = arith.mulf %other, %other : tensor<64x64xf32, #acc>
  %next = arith.select %rows, %product, %sum : tensor<64x64xi1, #acc>, tensor<64x64xf32, #acc>
  tile.store %next to %o[%c0, %c0] : tensor<64x64xf32, #acc>, memref<?x64xf32>
  return
}

}
