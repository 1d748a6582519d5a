// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

// There are no vectors of indices: casts to and from integers that share registers are of one element each.

#acc = #tile.acc<units = 1>

// CHECK-LABEL: llvm.func @narrow
// CHECK-COUNT-4: llvm.trunc %{{.*}} : i32 to i8
// CHECK: llvm.add %{{.*}} : vector<4xi8>
// CHECK-COUNT-4: llvm.sext %{{.*}} : i8 to i32
// CHECK-NOT: unrealized_conversion_cast
func.func @narrow(%n: index, %o: memref<?x8xi32>, %m: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %n : index -> tensor<64x8xindex, #acc>
  %byte = arith.index_cast %t : tensor<64x8xindex, #acc> to tensor<64x8xi8, #acc>
  %twice = arith.addi %byte, %byte : tensor<64x8xi8, #acc>
  %back = arith.index_cast %twice : tensor<64x8xi8, #acc> to tensor<64x8xindex, #acc>
  %word = arith.index_cast %back : tensor<64x8xindex, #acc> to tensor<64x8xi32, #acc>
  tile.store %word to %o[%m, %zero] : tensor<64x8xi32, #acc>, memref<?x8xi32>
  return
}
