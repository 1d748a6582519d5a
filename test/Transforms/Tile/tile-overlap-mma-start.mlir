// RUN: attn-opt %s --tile-overlap-mma | FileCheck %s

#acc = #tile.acc<units = 1>
!t = tensor<64x64xf32, #acc>
!s = !tile.shared<64x64xbf16, swizzle = 128>

// A product that starts with a computed tile while another is in flight: the tile is complete before both start.
// CHECK-LABEL: func.func @start
func.func @start(%m: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[1]]>} {
  %c0 = arith.constant 0 : index
  %a = tile.alloc_shared : !s
  %one = arith.constant 1.0 : f32
  %x = tile.broadcast %one : f32 -> !t
  // CHECK: %[[Y:.*]] = arith.negf
  // CHECK: %[[START:.*]] = tile.mma_wait 7, %[[Y]]
  // CHECK: %[[P:.*]] = tile.mma_async %{{.*}}, %{{.*}} :
  // CHECK: %[[Q:.*]] = tile.mma_async %{{.*}}, %{{.*}}, %[[START]]
  %y = arith.negf %x : !t
  %p = tile.mma %a, %a : !s, !s -> !t
  %q = tile.mma %a, %a, %y : !s, !s, !t -> !t
  tile.store %p to %m[%c0, %c0] : !t, memref<?x?xf32, strided<[?, 1]>>
  tile.store %q to %m[%c0, %c0] : !t, memref<?x?xf32, strided<[?, 1]>>
  return
}

// Numbers that are read beside a product come after its wait: until then a thread has other tiles in these registers.
// CHECK-LABEL: func.func @beside
func.func @beside(%m: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[1]]>} {
  %c0 = arith.constant 0 : index
  %a = tile.alloc_shared : !s
  %row = tile.alloc_shared : !tile.shared<64xf32>
  // CHECK: %[[P:.*]] = tile.mma_async
  // CHECK: %[[Q:.*]] = tile.mma_async
  // CHECK: %[[DONE:.*]] = tile.mma_wait 1, %[[P]]
  // CHECK: %[[N:.*]] = tile.load_columns
  // CHECK: %[[X:.*]] = arith.addf %[[DONE]], %[[N]]
  // CHECK: math.exp2 %[[X]]
  // CHECK: tile.mma_wait 0, %[[Q]]
  %p = tile.mma %a, %a : !s, !s -> !t
  %q = tile.mma %a, %a : !s, !s -> !t
  %n = tile.load_columns %row : !tile.shared<64xf32> -> !t
  %x = arith.addf %p, %n : !t
  %y = math.exp2 %x : !t
  tile.store %y to %m[%c0, %c0] : !t, memref<?x?xf32, strided<[?, 1]>>
  tile.store %q to %m[%c0, %c0] : !t, memref<?x?xf32, strided<[?, 1]>>
  return
}
