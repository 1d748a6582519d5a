// RUN: attn-opt %s --tile-split-products --split-input-file | FileCheck %s

!m = memref<?x?x32xf32, strided<[?, ?, 1]>>

// What is read from memory is split by a kernel before, into scratch that comes before other scratch; what is computed is split
// where it is. Six products of parts make one sum.
// CHECK-LABEL: func.func @kernel_parts(
// CHECK-SAME: %[[SOURCE:[a-z0-9]+]]: memref<?x?x32xf32
// CHECK-SAME: {tile.scratch = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 0, dim = 1>, 32]}
// CHECK-SAME: tile.kernel = #tile.kernel<warpgroups = 1, grid = {{\[\[}}#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 0, dim = 1, divisor = 32>]
// CHECK: %[[X:.*]] = tile.load %[[SOURCE]]
// CHECK: %[[X1:.*]] = arith.truncf %[[X]] : tensor<32x32xf32> to tensor<32x32xbf16>
// CHECK: %[[R:.*]] = arith.subf %[[X]]
// CHECK: arith.cmpf ord, %[[R]], %[[R]]
// CHECK: %[[X2:.*]] = arith.truncf
// CHECK: %[[X3:.*]] = arith.truncf
// CHECK: tile.store %[[X1]]
// CHECK: tile.store %[[X2]]
// CHECK: tile.store %[[X3]]
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %[[K1:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1]>>, %[[K2:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1]>>, %[[K3:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1]>>, %{{[a-z0-9]+}}: memref<?xf32> {tile.scratch
// CHECK: %[[P:.*]] = arith.addf
// CHECK: %[[P1:.*]] = arith.truncf %[[P]]
// CHECK: %[[P2:.*]] = arith.truncf
// CHECK: %[[P3:.*]] = arith.truncf
// CHECK-DAG: %[[V1:.*]] = tile.load %[[K1]]
// CHECK-DAG: %[[V2:.*]] = tile.load %[[K2]]
// CHECK-DAG: %[[V3:.*]] = tile.load %[[K3]]
// CHECK: %[[A:.*]] = tile.mma %[[P1]], %[[V3]] :
// CHECK: %[[B:.*]] = tile.mma %[[P2]], %[[V2]], %[[A]] :
// CHECK: %[[C:.*]] = tile.mma %[[P3]], %[[V1]], %[[B]] :
// CHECK: %[[D:.*]] = tile.mma %[[P1]], %[[V2]], %[[C]] :
// CHECK: %[[E:.*]] = tile.mma %[[P2]], %[[V1]], %[[D]] :
// CHECK: tile.mma %[[P1]], %[[V1]], %[[E]] :
func.func @kernel(%v: !m, %o: memref<?x32xf32>, %s: memref<?xf32> {tile.scratch = [4]}) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %w = tile.broadcast %one : f32 -> tensor<64x32xf32>
  %p = arith.addf %w, %w : tensor<64x32xf32>
  %t = tile.load %v[%c0, %c0, %c0] : !m -> tensor<32x32xf32>
  %r = tile.mma %p, %t : tensor<64x32xf32>, tensor<32x32xf32> -> tensor<64x32xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x32xf32>, memref<?x32xf32>
  return
}

// -----

!m = memref<?x32xf32, strided<[?, 1]>>

// Both ways round, sums are in the order of the arguments: what the backward pass adds is what the forward pass added.
// CHECK-LABEL: func.func @exchanged(
// CHECK-DAG: %[[A1:.*]] = tile.load %arg6
// CHECK-DAG: %[[A2:.*]] = tile.load %arg7
// CHECK-DAG: %[[B2:.*]] = tile.load %arg4
// CHECK-DAG: %[[B3:.*]] = tile.load %arg5
// CHECK: tile.mma %[[B3]], %[[A1]] {transpose_rhs} :
// CHECK: tile.mma %[[B2]], %[[A2]], %{{.*}} {transpose_rhs} :
func.func @exchanged(%a: !m, %b: !m, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] : !m -> tensor<64x32xf32>
  %y = tile.load %b[%c0, %c0] : !m -> tensor<64x32xf32>
  %r = tile.mma %y, %x {transpose_rhs} : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x64xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  return
}

// -----

// Rows of the parts are packed, or those of sequences, as rows of the argument are.
// CHECK: func.func @packed(
// CHECK-SAME: memref<?x?x?x32xbf16, strided<[?, ?, ?, 1]>> {plan.packed = #plan.packed<slots = 4, keys = 1>}, %{{[a-z0-9]+}}: memref<?x?x?x32xbf16, strided<[?, ?, ?, 1]>> {plan.packed
!m = memref<?x?x?x32xf32, strided<[?, ?, ?, 1]>>
func.func @packed(%a: !m {plan.packed = #plan.packed<slots = 4, keys = 1>}, %b: !m, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0, %c0, %c0] : !m -> tensor<64x32xf32>
  %y = tile.load %b[%c0, %c0, %c0, %c0] : !m -> tensor<64x32xf32>
  %r = tile.mma %x, %y {transpose_rhs} : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x64xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  return
}

// -----

// The products of a tile have a sum of their own: tensor cores drop what is below the last bit of a sum.
// CHECK-LABEL: func.func @apart(
// CHECK: %[[FIRST:.*]] = tile.mma %{{[0-9a-z_]+}}, %{{[0-9a-z_]+}} :
// CHECK: tile.mma {{.*}}, %[[FIRST]] :
// CHECK-COUNT-3: tile.mma
// CHECK: %[[TILE:.*]] = tile.mma
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %{{.*}}, %[[TILE]] : tensor<64x32xf32>
// CHECK: tile.store %[[SUM]]
!m = memref<?x32xf32, strided<[?, 1]>>
func.func @apart(%a: !m, %b: memref<?x64xf32, strided<[?, 1]>>, %o: memref<?x32xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %x = tile.load %b[%c0, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<64x64xf32>
  %y = tile.load %a[%c0, %c0] : !m -> tensor<64x32xf32>
  %before = tile.load %a[%c0, %c0] : !m -> tensor<64x32xf32>
  %r = tile.mma %x, %y, %before : tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x32xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x32xf32>, memref<?x32xf32>
  return
}

// -----

// Registers do not hold two sums of so many columns.
// CHECK-LABEL: func.func @wide(
// CHECK: %[[BEFORE:.*]] = tile.load %arg1[%{{.*}} -> tensor<64x192xf32>
// CHECK: tile.mma %{{.*}}, %{{.*}}, %[[BEFORE]] :
// CHECK-NOT: arith.addf
!w = memref<?x192xf32, strided<[?, 1]>>
func.func @wide(%a: !w, %c: !w, %b: memref<?x64xf32, strided<[?, 1]>>, %o: memref<?x192xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %x = tile.load %b[%c0, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<64x64xf32>
  %y = tile.load %a[%c0, %c0] : !w -> tensor<64x192xf32>
  %before = tile.load %c[%c0, %c0] : !w -> tensor<64x192xf32>
  %r = tile.mma %x, %y, %before : tensor<64x64xf32>, tensor<64x192xf32>, tensor<64x192xf32> -> tensor<64x192xf32>
  tile.store %r to %o[%c0, %c0] : tensor<64x192xf32>, memref<?x192xf32>
  return
}
