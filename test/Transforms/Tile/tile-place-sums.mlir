// RUN: attn-opt %s --tile-place-sums --canonicalize | FileCheck %s

#acc = #tile.acc<units = 1, product = "tcgen05">
#row = #tile.row<#acc>
#lhs = #tile.operand_a<units = 1, product = "tcgen05">
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>

module attributes {plan.target = #plan.target<"sm_100a">} {

// A product that nothing is added to is read at once, and shares columns with weights. A sum that a loop carries has
// a place, which rows are scaled in.
// CHECK-LABEL: func.func @attend
// CHECK:         %[[ALL:.*]] = tile.alloc_tensor : !tile.columns<128>
// CHECK-NEXT:    %[[DONE:.*]] = tile.barrier_init 1 : !tile.barrier<1>
// CHECK:         role consumer
// CHECK-DAG:       %[[S:.*]] = tile.tensor_place %[[ALL]] at 0 : !tile.columns<128> -> !tile.tensor<128x64xf32>
// CHECK-DAG:       %[[O:.*]] = tile.tensor_place %[[ALL]] at 64 : !tile.columns<128> -> !tile.tensor<128x64xf32>
// CHECK-DAG:       %[[P:.*]] = tile.tensor_place %[[ALL]] at 0 : !tile.columns<128> -> !tile.tensor<128x64xbf16>
// CHECK:           tile.store_tensor %{{.*}} to %[[O]]
// CHECK:           scf.for {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}) -> (!tile.slot<1>) {
// CHECK:             tile.named_barrier sync %[[ID:.*]] threads 128
// CHECK-NEXT:        tile.mma_tensor %{{.*}}, %{{.*}} to %[[S]] signal %[[DONE]][%[[SLOT]]] {transpose_rhs}
// CHECK-NEXT:        tile.barrier_wait %[[DONE]][%[[SLOT]]]
// CHECK-NEXT:        %[[SECOND:.*]] = tile.next_phase %[[SLOT]]
// CHECK-NEXT:        %[[SCORES:.*]] = tile.load_tensor %[[S]]
// CHECK:             scf.if
// CHECK:               tile.scale_tensor %[[O]] by %{{.*}}
// CHECK-NEXT:        }
// CHECK:             tile.store_tensor %{{.*}} to %[[P]]
// CHECK-NEXT:        tile.named_barrier sync %[[ID]] threads 128
// CHECK-NEXT:        tile.mma_tensor %[[P]], %{{.*}} to %[[O]] signal %[[DONE]][%[[SECOND]]] {add}
// CHECK-NEXT:        tile.barrier_wait %[[DONE]][%[[SECOND]]]
// CHECK-NEXT:        %[[THIRD:.*]] = tile.next_phase %[[SECOND]]
// CHECK-NEXT:        scf.yield %[[THIRD]]
// CHECK:           %[[SUM:.*]] = tile.load_tensor %[[O]]
// CHECK-NEXT:      tile.store %[[SUM]]
// CHECK:         tile.sync
// CHECK-NEXT:    tile.dealloc_tensor %[[ALL]]
func.func @attend(%q: !q, %k: !k, %n: index, %some: i1, %f: tensor<128xf32, #row>, %raised: tensor<128xi1, #row>, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
  }
  role consumer warpgroups 1 registers 240 {
    %zeros = tile.broadcast %zero : f32 -> tensor<128x64xf32, #acc>
    %factors = tile.broadcast %f : tensor<128xf32, #row> -> tensor<128x64xf32, #acc>
    %rows = tile.broadcast %raised : tensor<128xi1, #row> -> tensor<128x64xi1, #acc>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%before = %zeros) -> (tensor<128x64xf32, #acc>) {
      %s = tile.mma %q, %k {transpose_rhs} : !q, !k -> tensor<128x64xf32, #acc>
      %w = math.exp2 %s : tensor<128x64xf32, #acc>
      %p = arith.truncf %w : tensor<128x64xf32, #acc> to tensor<128x64xbf16, #acc>
      %scaled = scf.if %some -> (tensor<128x64xf32, #acc>) {
        %product = arith.mulf %before, %factors : tensor<128x64xf32, #acc>
        %kept = arith.select %rows, %product, %before : tensor<128x64xi1, #acc>, tensor<128x64xf32, #acc>
        scf.yield %kept : tensor<128x64xf32, #acc>
      } else {
        scf.yield %before : tensor<128x64xf32, #acc>
      }
      %lhs = tile.convert_layout %p : tensor<128x64xbf16, #acc> -> tensor<128x64xbf16, #lhs>
      %next = tile.mma %lhs, %k, %scaled : tensor<128x64xbf16, #lhs>, !k, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
      scf.yield %next : tensor<128x64xf32, #acc>
    }
    tile.store %sum to %o[%c0, %c0] : tensor<128x64xf32, #acc>, memref<?x64xf32>
  }
  return
}

// A first product that adds to nothing needs no zeros.
// CHECK-LABEL: func.func @first
// CHECK-NOT:     tile.store_tensor
// CHECK:         tile.mma_tensor {{.*}} {transpose_rhs}
// CHECK:         tile.mma_tensor {{.*}} {add, transpose_rhs}
// CHECK-NOT:     tile.store_tensor
// CHECK:         return
func.func @first(%q: !q, %k: !k, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
  }
  role consumer warpgroups 1 registers 240 {
    %zeros = tile.broadcast %zero : f32 -> tensor<128x64xf32, #acc>
    %a = tile.mma %q, %k, %zeros {transpose_rhs} : !q, !k, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
    %b = tile.mma %q, %k, %a {transpose_rhs} : !q, !k, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
    tile.store %b to %o[%c0, %c0] : tensor<128x64xf32, #acc>, memref<?x64xf32>
  }
  return
}

}
