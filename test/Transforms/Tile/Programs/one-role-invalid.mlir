// RUN: not attn-opt %s --tile-assign-roles --tile-make-rings --tile-outline-roles 2>&1 | FileCheck %s

// One role that copies and computes: rings come out right, and nobody would fill them ahead of their use.
// CHECK: error: 'func.func' op expected tile.roles of at least two roles, got 1
func.func @dq(%arg0: memref<?x64xbf16, strided<[?, 1]>>, %arg1: memref<?x64xbf16, strided<[?, 1]>>, %arg2: memref<?x64xbf16, strided<[?, 1]>>, %arg3: memref<?x64xbf16, strided<[?, 1]>>, %arg4: memref<?x64xf32, strided<[?, 1]>>) attributes {tile.roles = [#tile.role<name = "compute", warpgroups = 2, registers = 240>], tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 128>], [], []]>} {
  %cst = arith.constant 0.000000e+00 : f32
  %c128 = arith.constant 128 : index
  %c64 = arith.constant 64 : index
  %c0 = arith.constant 0 : index
  %0 = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %1 = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128>
  %2 = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  %3 = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128>
  %block_id_x = gpu.block_id  x
  %4 = arith.muli %block_id_x, %c128 : index
  %dim = memref.dim %arg1, %c0 : memref<?x64xbf16, strided<[?, 1]>>
  %5 = tile.broadcast %cst : f32 -> tensor<128x64xf32, #tile.acc<units = 2>>
  tile.copy %arg0[%4, %c0] to %3 : memref<?x64xbf16, strided<[?, 1]>>, !tile.shared<128x64xbf16, swizzle = 128>
  tile.copy %arg3[%4, %c0] to %1 : memref<?x64xbf16, strided<[?, 1]>>, !tile.shared<128x64xbf16, swizzle = 128>
  %6 = scf.for %arg5 = %c0 to %dim step %c64 iter_args(%arg6 = %5) -> (tensor<128x64xf32, #tile.acc<units = 2>>) {
    tile.copy %arg1[%arg5, %c0] to %2 : memref<?x64xbf16, strided<[?, 1]>>, !tile.shared<64x64xbf16, swizzle = 128>
    %7 = tile.mma %3, %2 {transpose_rhs} : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<128x64xf32, #tile.acc<units = 2>>
    %8 = math.exp2 %7 : tensor<128x64xf32, #tile.acc<units = 2>>
    tile.copy %arg2[%arg5, %c0] to %0 : memref<?x64xbf16, strided<[?, 1]>>, !tile.shared<64x64xbf16, swizzle = 128>
    %9 = tile.mma %1, %0 {transpose_rhs} : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<128x64xf32, #tile.acc<units = 2>>
    %10 = arith.mulf %8, %9 : tensor<128x64xf32, #tile.acc<units = 2>>
    %11 = arith.truncf %10 : tensor<128x64xf32, #tile.acc<units = 2>> to tensor<128x64xbf16, #tile.acc<units = 2>>
    %12 = tile.convert_layout %11 : tensor<128x64xbf16, #tile.acc<units = 2>> -> tensor<128x64xbf16, #tile.operand_a<units = 2>>
    %13 = tile.mma %12, %2, %arg6 : tensor<128x64xbf16, #tile.operand_a<units = 2>>, !tile.shared<64x64xbf16, swizzle = 128>, tensor<128x64xf32, #tile.acc<units = 2>> -> tensor<128x64xf32, #tile.acc<units = 2>>
    scf.yield %13 : tensor<128x64xf32, #tile.acc<units = 2>>
  }
  tile.store %6 to %arg4[%4, %c0] : tensor<128x64xf32, #tile.acc<units = 2>>, memref<?x64xf32, strided<[?, 1]>>
  return
}
