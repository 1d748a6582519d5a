// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

#acc = #tile.acc<units = 2>
#row = #tile.row<#acc>
!global = memref<?x?x?x64xbf16>
!keys = !tile.shared<96x64xbf16, swizzle = 128>

// Room 4: tiles without layouts.
// CHECK-LABEL: func.func @synchronous
func.func @synchronous(%q: !global, %o: !global, %ids: memref<?x?xi32>, %table: memref<?x?xf32>, %one: memref<f32>, %b: index,
                       %m: index, %zero: index) {
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<?x?x?x64xbf16> -> tensor<128x64xbf16>
  %t = tile.load %q[%b, %zero, %m, %zero] : !global -> tensor<128x64xbf16>
  // CHECK: tile.mma %{{.*}}, %{{.*}} {transpose_rhs} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
  %s = tile.mma %t, %t {transpose_rhs} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
  // CHECK: tile.sum_diagonals %{{.*}} : tensor<128x128xf32>
  %diagonals = tile.sum_diagonals %s : tensor<128x128xf32>
  // CHECK: tile.reduce max %{{.*}} : tensor<128x128xf32> -> tensor<128xf32>
  %max = tile.reduce max %s : tensor<128x128xf32> -> tensor<128xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<128xf32> -> tensor<128x128xf32>
  %shift = tile.broadcast %max : tensor<128xf32> -> tensor<128x128xf32>
  // CHECK: tile.coord 1 from %{{.*}} : tensor<128x128xindex>
  %column = tile.coord 1 from %m : tensor<128x128xindex>
  // CHECK: tile.part_begin %{{.*}} for %{{.*}}, %{{.*}}
  %begin = tile.part_begin %zero for %m, %zero
  // CHECK: tile.vote all %{{.*}} : tensor<128x128xi1>
  %zeros = tile.broadcast %zero : index -> tensor<128x128xindex>
  %inside = arith.cmpi sge, %column, %zeros : tensor<128x128xindex>
  %all = tile.vote all %inside : tensor<128x128xi1>
  // CHECK: tile.load_columns %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf32> -> tensor<128x128xf32>
  %numbers = tile.load_columns %table[%b, %m] : memref<?x?xf32> -> tensor<128x128xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xi32>, index, tensor<128x128xindex> -> tensor<128x128xi32>
  %id = tile.gather %ids[%b, %column] : memref<?x?xi32>, index, tensor<128x128xindex> -> tensor<128x128xi32>
  // CHECK: tile.store %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : tensor<128x64xbf16>, memref<?x?x?x64xbf16>
  tile.store %t to %o[%b, %zero, %m, %zero] : tensor<128x64xbf16>, !global
  // CHECK: tile.scatter_add %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] where %{{.*}} : tensor<128x128xf32>, memref<?x?xf32>, index, tensor<128x128xindex>
  tile.scatter_add %s to %table[%b, %column] where %inside : tensor<128x128xf32>, memref<?x?xf32>, index, tensor<128x128xindex>
  // CHECK: tile.scatter_add %{{.*}} to %{{.*}}[] where %{{.*}} : tensor<128x128xf32>, memref<f32>
  tile.scatter_add %s to %one[] where %inside : tensor<128x128xf32>, memref<f32>
  return
}

// Room 5: places and layouts.
// CHECK-LABEL: func.func @placed
func.func @placed(%k: !global, %b: index, %n: index, %zero: index, %s: tensor<128x96xf32, #acc>) {
  // CHECK: tile.alloc_shared at 1024 : !tile.shared<96x64xbf16, swizzle = 128>
  %keys = tile.alloc_shared at 1024 : !keys
  // CHECK: tile.copy %{{.*}}[%{{.*}}] to %{{.*}} : memref<?x?x?x64xbf16>, !tile.shared<96x64xbf16, swizzle = 128>
  tile.copy %k[%b, %zero, %n, %zero] to %keys : !global, !keys
  %half = arith.truncf %s : tensor<128x96xf32, #acc> to tensor<128x96xbf16, #acc>
  // CHECK: tile.convert_layout %{{.*}} : tensor<128x96xbf16, #tile.acc<units = 2>> -> tensor<128x96xbf16, #tile.operand_a<units = 2>>
  %p = tile.convert_layout %half : tensor<128x96xbf16, #acc> -> tensor<128x96xbf16, #tile.operand_a<units = 2>>
  // CHECK: tile.mma %{{.*}}, %{{.*}} : tensor<128x96xbf16, #tile.operand_a<units = 2>>, !tile.shared<96x64xbf16, swizzle = 128> -> tensor<128x64xf32, #tile.acc<units = 2>>
  %o = tile.mma %p, %keys : tensor<128x96xbf16, #tile.operand_a<units = 2>>, !keys -> tensor<128x64xf32, #acc>
  // CHECK: tile.reduce add %{{.*}} : tensor<128x64xf32, #tile.acc<units = 2>> -> tensor<128x4xf32, #tile.quad<#tile.acc<units = 2>>>
  %l = tile.reduce add %o : tensor<128x64xf32, #acc> -> tensor<128x4xf32, #tile.quad<#acc>>
  // CHECK: tile.reduce add %{{.*}} : tensor<128x4xf32, #tile.quad<#tile.acc<units = 2>>> -> tensor<128xf32, #tile.row<#tile.acc<units = 2>>>
  %sum = tile.reduce add %l : tensor<128x4xf32, #tile.quad<#acc>> -> tensor<128xf32, #row>
  return
}

// Room 6: rings, roles, products in flight.
// CHECK-LABEL: func.func @asynchronous
func.func @asynchronous(%k: !global, %sum: memref<?x96xf32>, %b: index, %n: index, %zero: index) attributes {
    // CHECK-SAME: tile.kernel = #tile.kernel<warpgroups = 3, grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 128>], [4]]>
    tile.kernel = #tile.kernel<warpgroups = 3, grid = [[#plan.extent<argument = 0, dim = 2, divisor = 128>], [4]]>} {
  %q = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128>
  %ring = tile.alloc_shared : !tile.shared<96x64xbf16, swizzle = 128, stages = 2>
  %place = tile.alloc_shared : !tile.shared<128x96xf32, swizzle = 128>
  // CHECK: tile.barrier_init 1 : !tile.barrier<2>
  %full = tile.barrier_init 1 : !tile.barrier<2>
  %empty = tile.barrier_init 2 : !tile.barrier<2>
  // CHECK: tile.sync
  tile.sync
  // CHECK: tile.specialize
  tile.specialize
  // CHECK: role producer warpgroups 1 registers 24 elected {
  role producer warpgroups 1 registers 24 elected {
    // CHECK: tile.slot : !tile.slot<2>
    %first = tile.slot : !tile.slot<2>
    // CHECK: tile.next %{{.*}} : !tile.slot<2>
    %slot = tile.next %first : !tile.slot<2>
    // CHECK: tile.stage %{{.*}}[%{{.*}}] : !tile.shared<96x64xbf16, swizzle = 128, stages = 2>
    %keys = tile.stage %ring[%slot] : !tile.shared<96x64xbf16, swizzle = 128, stages = 2>
    // CHECK: tile.barrier_wait previous %{{.*}}[%{{.*}}] : !tile.barrier<2>
    tile.barrier_wait previous %empty[%slot] : !tile.barrier<2>
    // CHECK: tile.barrier_expect %{{.*}}[%{{.*}}] bytes 12288 : !tile.barrier<2>
    tile.barrier_expect %full[%slot] bytes 12288 : !tile.barrier<2>
    // CHECK: tile.copy_async %{{.*}}[%{{.*}}] to %{{.*}} signal %{{.*}}[%{{.*}}] : memref<?x?x?x64xbf16>, !tile.shared<96x64xbf16, swizzle = 128>, !tile.barrier<2>
    tile.copy_async %k[%b, %zero, %n, %zero] to %keys signal %full[%slot] : !global, !keys, !tile.barrier<2>
  }
  // CHECK: role consumer warpgroups 2 registers 240 {
  role consumer warpgroups 2 registers 240 {
    %slot = tile.slot : !tile.slot<2>
    %keys = tile.stage %ring[%slot] : !tile.shared<96x64xbf16, swizzle = 128, stages = 2>
    // CHECK: tile.warpgroup
    %w = tile.warpgroup
    // CHECK: tile.mma_async {{.*}} {transpose_rhs} : {{.*}} -> !tile.in_flight<tensor<128x96xf32, #tile.acc<units = 2>>>
    %flying = tile.mma_async %q, %keys {transpose_rhs}
        : !tile.shared<128x64xbf16, swizzle = 128>, !keys -> !tile.in_flight<tensor<128x96xf32, #acc>>
    // CHECK: tile.mma_commit
    tile.mma_commit
    // CHECK: tile.mma_wait 0, %{{.*}} : !tile.in_flight<tensor<128x96xf32, #tile.acc<units = 2>>>
    %s = tile.mma_wait 0, %flying : !tile.in_flight<tensor<128x96xf32, #acc>>
    // CHECK: tile.barrier_arrive %{{.*}}[%{{.*}}] : !tile.barrier<2>
    tile.barrier_arrive %empty[%slot] : !tile.barrier<2>
    // CHECK: tile.fence async_shared
    tile.fence async_shared
    // CHECK: tile.named_barrier sync %{{.*}} threads 256
    tile.named_barrier sync %w threads 256
    // CHECK: tile.named_barrier arrive %{{.*}} threads 256
    tile.named_barrier arrive %w threads 256
    // CHECK: tile.store_async %{{.*}} to %{{.*}}[%{{.*}}] : !tile.shared<96x64xbf16, swizzle = 128>, memref<?x?x?x64xbf16>
    tile.store_async %keys to %k[%b, %zero, %n, %zero] : !keys, !global
    // CHECK: tile.add_async %{{.*}} to %{{.*}}[%{{.*}}] through %{{.*}} : tensor<128x96xf32, #tile.acc<units = 2>>, memref<?x96xf32>, !tile.shared<128x96xf32, swizzle = 128>
    tile.add_async %s to %sum[%n, %zero] through %place : tensor<128x96xf32, #acc>, memref<?x96xf32>, !tile.shared<128x96xf32, swizzle = 128>
    // CHECK: tile.store_wait
    tile.store_wait
  }
  return
}

// Room 6: rows that a table finds.
// CHECK-LABEL: func.func @gathered
func.func @gathered(%k: memref<?x1x?x64xbf16> {plan.paged = #plan.paged<table = 1, page = 1>}, %table: memref<?x?xi32>,
                    %b: index, %h: index, %n: index, %zero: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %keys = tile.alloc_shared : !keys
  %full = tile.barrier_init 128 : !tile.barrier<1>
  tile.sync
  // CHECK: tile.find_rows %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<?x1x?x64xbf16> -> !tile.rows<96, warps = 4>
  %rows = tile.find_rows %k[%b, %h, %n, %zero] : memref<?x1x?x64xbf16> -> !tile.rows<96, warps = 4>
  // CHECK: tile.gather_async %{{.*}}[%{{.*}}] at %{{.*}} to %{{.*}} : memref<?x1x?x64xbf16>, !tile.rows<96, warps = 4>, !tile.shared<96x64xbf16, swizzle = 128>
  tile.gather_async %k[%b, %h, %n, %zero] at %rows to %keys : memref<?x1x?x64xbf16>, !tile.rows<96, warps = 4>, !keys
  // CHECK: tile.arrive_landed %{{.*}} : !tile.barrier<1>
  tile.arrive_landed %full : !tile.barrier<1>
  return
}

// Elements of 8 bits: an order of columns that shared tiles and operands in registers have alike.
// CHECK-LABEL: func.func @quads
func.func @quads(%v: !tile.shared<128x64xf8E4M3FN, swizzle = 64>, %ring: !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads, stages = 2>,
                 %t: !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>,
                 %p: tensor<64x128xf8E5M2, #tile.operand_a<units = 1, quads = true>>) {
  // CHECK: tile.transpose %{{.*}} to %{{.*}} : !tile.shared<128x64xf8E4M3FN, swizzle = 64>, !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
  tile.transpose %v to %t : !tile.shared<128x64xf8E4M3FN, swizzle = 64>, !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads>
  // CHECK: tile.mma %{{.*}}, %{{.*}} {transpose_rhs} : tensor<64x128xf8E5M2, #tile.operand_a<units = 1, quads = true>>
  %o = tile.mma %p, %t {transpose_rhs} : tensor<64x128xf8E5M2, #tile.operand_a<units = 1, quads = true>>,
      !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads> -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}
