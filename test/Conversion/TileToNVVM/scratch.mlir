// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

#acc = #tile.acc<units = 1>

// The plan of the kernel that declares scratch tells its sizes; other kernels of the function find it by its number.
// CHECK-LABEL: llvm.func @fill(
// CHECK-SAME:    scratch = [{argument = 1 : i64, element_type = "f32", shape = [{constant = 3 : i64}, {argument = 0 : i64, dim = 0 : i64, divisor = 1 : i64}, {constant = 128 : i64}]}]
func.func @fill(%q: memref<?x64xbf16>, %s: memref<3x?x128xf32> {tile.scratch = [3, #plan.extent<argument = 0, dim = 0>, 128]}) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]]>} {
  %b = gpu.block_id x
  %zero = arith.constant 0 : index
  %half = arith.constant 64 : index
  %t = arith.constant dense<1.0> : tensor<64x64xf32, #acc>
  // Half of the columns, behind which the memory goes on: pairs are stored, and only rows are guarded.
  // CHECK: llvm.icmp "sgt"
  // CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  tile.store %t to %s[%b, %b, %zero] : tensor<64x64xf32, #acc>, memref<3x?x128xf32>
  // CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  tile.store %t to %s[%b, %b, %half] : tensor<64x64xf32, #acc>, memref<3x?x128xf32>
  return
}

// CHECK-LABEL: llvm.func @join(
// CHECK-SAME:    scratch = []
func.func @join(%q: memref<?x64xbf16>, %s: memref<3x?x128xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %b = gpu.block_id x
  %past = arith.constant 96 : index
  // Columns from 128 on are not there.
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  %t = tile.load %s[%b, %b, %past] : memref<3x?x128xf32> -> tensor<64x64xf32, #acc>
  tile.store %t to %s[%b, %b, %past] : tensor<64x64xf32, #acc>, memref<3x?x128xf32>
  return
}
