// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

#acc = #tile.acc<units = 2>
!values = !tile.shared<96x64xbf16, swizzle = 128>
!marks = !tile.shared<8x8xi32, swizzle = 32>

// CHECK-LABEL: func.func @tiles
func.func @tiles(%v: tensor<96x64xbf16>, %p: tensor<128x96xbf16>, %c: i1, %n: index) -> tensor<96x64xbf16> {
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} : tensor<96x64xbf16>, tensor<128x96xbf16> -> tensor<96x64xbf16>
  %0 = tile.clear_unread %v by %p : tensor<96x64xbf16>, tensor<128x96xbf16> -> tensor<96x64xbf16>
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} if %{{.*}} : tensor<96x64xbf16>, tensor<128x96xbf16> -> tensor<96x64xbf16>
  %1 = tile.clear_unread %0 by %p if %c : tensor<96x64xbf16>, tensor<128x96xbf16> -> tensor<96x64xbf16>
  // CHECK: tile.clear_unread %{{.*}} from %{{.*}} if %{{.*}} : tensor<96x64xbf16> -> tensor<96x64xbf16>
  %2 = tile.clear_unread %1 from %n if %c : tensor<96x64xbf16> -> tensor<96x64xbf16>
  return %2 : tensor<96x64xbf16>
}

// CHECK-LABEL: func.func @in_place
func.func @in_place(%p: tensor<128x96xbf16, #acc>, %c: i1, %n: index) {
  %v = tile.alloc_shared : !values
  %marks = tile.alloc_shared : !marks
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} if %{{.*}} : !tile.shared<96x64xbf16, swizzle = 128>, tensor<128x96xbf16, #tile.acc<units = 2>>
  tile.clear_unread %v by %p if %c : !values, tensor<128x96xbf16, #acc>
  // CHECK: tile.mark_read %{{.*}} to %{{.*}} : tensor<128x96xbf16, #tile.acc<units = 2>>, !tile.shared<8x8xi32, swizzle = 32>
  tile.mark_read %p to %marks : tensor<128x96xbf16, #acc>, !marks
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} : !tile.shared<96x64xbf16, swizzle = 128>, !tile.shared<8x8xi32, swizzle = 32>
  tile.clear_unread %v by %marks : !values, !marks
  // CHECK: tile.clear_unread %{{.*}} from %{{.*}} : !tile.shared<96x64xbf16, swizzle = 128>
  tile.clear_unread %v from %n : !values
  return
}
