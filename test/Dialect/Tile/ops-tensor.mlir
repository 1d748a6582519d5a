// RUN: attn-opt %s | attn-opt | FileCheck %s

#acc = #tile.acc<units = 2, product = "tcgen05">

module attributes {plan.target = #plan.target<"sm_100a">} {

// CHECK-LABEL: func.func @forms
func.func @forms(%q: !tile.shared<256x64xbf16, swizzle = 128>, %k: !tile.shared<64x64xbf16, swizzle = 128>, %f: tensor<256xf32, #tile.row<#acc>>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  // CHECK: %[[ALL:.*]] = tile.alloc_tensor at 4096 : !tile.columns<256>
  %all = tile.alloc_tensor at 4096 : !tile.columns<256>
  %done = tile.barrier_init 1 at 4104 : !tile.barrier<2>
  tile.sync
  // CHECK: tile.tensor_place %[[ALL]] at 64 : !tile.columns<256> -> !tile.tensor<256x64xf32>
  %s = tile.tensor_place %all at 64 : !tile.columns<256> -> !tile.tensor<256x64xf32>
  // CHECK: %[[SLOT:.*]] = tile.unit_slot : !tile.slot<2>
  %slot = tile.unit_slot : !tile.slot<2>
  // CHECK: tile.mma_tensor %{{.*}}, %{{.*}} to %{{.*}} signal %{{.*}}[%[[SLOT]]] {add, transpose_rhs} : !tile.shared<256x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.tensor<256x64xf32>, !tile.barrier<2>, !tile.slot<2>
  tile.mma_tensor %q, %k to %s signal %done[%slot] {add, transpose_rhs}
      : !tile.shared<256x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.tensor<256x64xf32>,
        !tile.barrier<2>, !tile.slot<2>
  tile.barrier_wait %done[%slot] : !tile.barrier<2>
  // CHECK: tile.next_phase %[[SLOT]] : !tile.slot<2>
  %next = tile.next_phase %slot : !tile.slot<2>
  // CHECK: tile.load_tensor %{{.*}} : !tile.tensor<256x64xf32> -> tensor<256x64xf32, #tile.acc<units = 2, product = "tcgen05">>
  %t = tile.load_tensor %s : !tile.tensor<256x64xf32> -> tensor<256x64xf32, #acc>
  // CHECK: tile.store_tensor
  tile.store_tensor %t to %s : tensor<256x64xf32, #acc>, !tile.tensor<256x64xf32>
  // CHECK: tile.scale_tensor %{{.*}} by %{{.*}} : !tile.tensor<256x64xf32>, tensor<256xf32, #tile.row<#tile.acc<units = 2, product = "tcgen05">>>
  tile.scale_tensor %s by %f : !tile.tensor<256x64xf32>, tensor<256xf32, #tile.row<#acc>>
  tile.sync
  // CHECK: tile.dealloc_tensor %[[ALL]] : !tile.columns<256>
  tile.dealloc_tensor %all : !tile.columns<256>
  return
}

}
