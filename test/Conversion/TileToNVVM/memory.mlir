// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// Register tiles and memory.

#acc = #tile.acc<units = 1>
#row = #tile.row<#acc>
#blocked = #tile.blocked<vector = 8, lanes = 8, warps = 4>

// Rows side by side: 16 bytes at a time, zeros below the end of the memory.
// CHECK-LABEL: llvm.func @load
func.func @load(%q: memref<?x64xbf16>, %o: memref<?x64xbf16>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  // CHECK: llvm.icmp "sgt"
  // CHECK: llvm.cond_br
  // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
  %t = tile.load %q[%m, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16, #blocked>
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
  tile.store %t to %o[%m, %zero] : tensor<64x64xbf16, #blocked>, memref<?x64xbf16>
  return
}

// An accumulator on its way there: the lanes of a quad exchange pairs, so that each has 16 bytes of a row.
// CHECK-LABEL: llvm.func @chunked
func.func @chunked(%x: bf16, %o: memref<?x32xbf16>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : bf16 -> tensor<64x32xbf16, #acc>
  // Of two rows with four pairs each.
  // CHECK-COUNT-8: nvvm.shfl.sync bfly {{.*}} : i32 -> i32
  // CHECK-NOT: nvvm.shfl.sync
  %c = tile.convert_layout %t : tensor<64x32xbf16, #acc> -> tensor<64x32xbf16, #tile.chunked<#acc>>
  // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  tile.store %c to %o[%m, %zero] : tensor<64x32xbf16, #tile.chunked<#acc>>, memref<?x32xbf16>
  // CHECK: llvm.return
  return
}

// A sum goes to memory in pairs of neighbours, inside of it; of a row that several lanes hold, one adds.
// CHECK-LABEL: llvm.func @add
func.func @add(%x: f32, %o: memref<?x64xf32>, %l: memref<?xf32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<64x64xf32, #acc>
  // CHECK: llvm.cond_br
  // CHECK-COUNT-16: llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};", "l,f,f,~{memory}"
  // CHECK-NOT: v2.f32
  tile.store %t to %o[%m, %zero] {add} : tensor<64x64xf32, #acc>, memref<?x64xf32>
  %r = tile.broadcast %x : f32 -> tensor<64xf32, #row>
  // CHECK-COUNT-2: llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.f32 [$0], $1;", "l,f,~{memory}"
  // CHECK-NOT: inline_asm
  tile.store %r to %l[%m] {add} : tensor<64xf32, #row>, memref<?xf32>
  // CHECK: llvm.return
  return
}

// Where nothing ends inside of the tile, and rows keep to 16 bytes, lanes exchange pairs and add four neighbours.
// CHECK-LABEL: llvm.func @pieces
func.func @pieces(%x: f32, %o: memref<?x64x32xf32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<64x32xf32, #acc>
  // CHECK-COUNT-2: nvvm.shfl.sync bfly
  // CHECK:         red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};
  // CHECK-COUNT-3: v4.f32
  // CHECK-NOT:     inline_asm
  tile.store %t to %o[%m, %zero, %zero] {add} : tensor<64x32xf32, #acc>, memref<?x64x32xf32>
  // CHECK: llvm.return
  return
}

// Columns that may end inside the tile are checked one by one.
// CHECK-LABEL: llvm.func @columns
func.func @columns(%o: memref<64x?xf32>, %n: index, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<64x8xf32, #acc>
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<1>
  tile.store %t to %o[%zero, %n] : tensor<64x8xf32, #acc>, memref<64x?xf32>
  return
}

// The swizzle is one exclusive or per pair.
// CHECK-LABEL: llvm.func @shared
func.func @shared(%x: bf16, %o: memref<?x16xbf16>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<64x16xbf16, swizzle = 32>
  %t = tile.broadcast %x : bf16 -> tensor<64x16xbf16, #acc>
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<3>
  tile.store %t to %s : tensor<64x16xbf16, #acc>, !tile.shared<64x16xbf16, swizzle = 32>
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
  // CHECK: nvvm.cp.async.bulk.commit.group
  tile.store_async %s to %o[%m, %zero] : !tile.shared<64x16xbf16, swizzle = 32>, memref<?x16xbf16>
  return
}

// Two numbers in one access, for both rows of a thread. The box of a row has no swizzle.
// CHECK-LABEL: llvm.func @load_columns
func.func @load_columns(%m: memref<?x?xf32, strided<[?, 1]>>, %o: memref<?x24xf32>, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %row = tile.alloc_shared : !tile.shared<32xf32>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  // CHECK: nvvm.mbarrier.arrive.expect_tx
  tile.barrier_expect %full bytes 128 : !tile.barrier<1>
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT: nvvm.cp.async.bulk.tensor.shared.cluster.global
  tile.copy_async %m[%zero, %i] to %row signal %full : memref<?x?xf32, strided<[?, 1]>>, !tile.shared<32xf32>, !tile.barrier<1>
  tile.barrier_wait %full : !tile.barrier<1>
  // CHECK-COUNT-3: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<3>
  %t = tile.load_columns %row : !tile.shared<32xf32> -> tensor<64x24xf32, #acc>
  tile.store %t to %o[%zero, %zero] : tensor<64x24xf32, #acc>, memref<?x24xf32>
  return
}

// One load per row and lane of a quad, not one per element.
// CHECK-LABEL: llvm.func @gather
func.func @gather(%ids: memref<?xi32>, %o: memref<?xi32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %rows = tile.coord 0 from %m : tensor<64x64xindex, #acc>
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // CHECK-NOT: llvm.load
  %id = tile.gather %ids[%rows] : memref<?xi32>, tensor<64x64xindex, #acc> -> tensor<64x64xi32, #acc>
  return
}

// One reduction per element, with a predicate.
// CHECK-LABEL: llvm.func @scatter_add
func.func @scatter_add(%d: memref<?x?xf32>, %x: f32, %h: index, %n: index, %end: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.broadcast %x : f32 -> tensor<64x8xf32, #acc>
  %columns = tile.coord 1 from %n : tensor<64x8xindex, #acc>
  %ends = tile.broadcast %end : index -> tensor<64x8xindex, #acc>
  %keep = arith.cmpi slt, %columns, %ends : tensor<64x8xindex, #acc>
  // CHECK-NOT:     llvm.cond_br
  // CHECK-COUNT-4: "@$2 red.relaxed.gpu.global.add.f32 [$0], $1;", "l,f,b,~{memory}"
  // CHECK-NOT:     red
  // CHECK: llvm.return
  tile.scatter_add %t to %d[%h, %columns] where %keep : tensor<64x8xf32, #acc>, memref<?x?xf32>, index, tensor<64x8xindex, #acc>
  return
}

// Of a row, which four lanes hold, one of them adds.
// CHECK-LABEL: llvm.func @scatter_add_rows
func.func @scatter_add_rows(%d: memref<?xf32>, %x: f32, %m: index, %end: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.broadcast %x : f32 -> tensor<64xf32, #row>
  %rows = tile.coord 0 from %m : tensor<64xindex, #row>
  %ends = tile.broadcast %end : index -> tensor<64xindex, #row>
  %keep = arith.cmpi slt, %rows, %ends : tensor<64xindex, #row>
  // CHECK:         %[[FIRST:.*]] = llvm.icmp "eq"
  // CHECK-COUNT-2: llvm.and %{{.*}}, %[[FIRST]] : i1
  // CHECK-COUNT-2: "@$2 red.relaxed.gpu.global.add.f32 [$0], $1;", "l,f,b,~{memory}"
  // CHECK-NOT:     red
  // CHECK: llvm.return
  tile.scatter_add %t to %d[%rows] where %keep : tensor<64xf32, #row>, memref<?xf32>, tensor<64xindex, #row>
  return
}

// What all add to one place is summed in registers and lanes: one reduction per warp.
// CHECK-LABEL: llvm.func @scatter_add_to_one
func.func @scatter_add_to_one(%d: memref<?xf32>, %x: f32, %h: index, %n: index, %end: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.broadcast %x : f32 -> tensor<64x8xf32, #acc>
  %columns = tile.coord 1 from %n : tensor<64x8xindex, #acc>
  %ends = tile.broadcast %end : index -> tensor<64x8xindex, #acc>
  %keep = arith.cmpi slt, %columns, %ends : tensor<64x8xindex, #acc>
  // CHECK-COUNT-4: llvm.select
  // CHECK-COUNT-5: nvvm.shfl.sync bfly
  // CHECK:         "@$2 red.relaxed.gpu.global.add.f32 [$0], $1;", "l,f,b,~{memory}"
  // CHECK-NOT:     red
  // CHECK: llvm.return
  tile.scatter_add %t to %d[%h] where %keep : tensor<64x8xf32, #acc>, memref<?xf32>, index
  return
}

// All threads copy chunks of 16 bytes; the asynchronous proxy sees them afterwards.
// CHECK-LABEL: llvm.func @copy
func.func @copy(%k: memref<?x64xbf16>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !tile.shared<16x64xbf16, swizzle = 128>
  // CHECK: nvvm.barrier0
  // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK: nvvm.fence.proxy
  // CHECK: nvvm.barrier0
  tile.copy %k[%n, %zero] to %s : memref<?x64xbf16>, !tile.shared<16x64xbf16, swizzle = 128>
  return
}

// Indices take 64 bits in memory, 32 in registers.
// CHECK-LABEL: llvm.func @indices
func.func @indices(%ids: memref<?xindex>, %o: memref<64x?xindex>, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  // CHECK: llvm.getelementptr {{.*}} -> !llvm.ptr<1>, i64
  // CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> i64
  // CHECK: llvm.trunc %{{.*}} : i64 to i32
  %id = memref.load %ids[%n] : memref<?xindex>
  // CHECK: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> i64
  %rows = tile.load %ids[%zero] : memref<?xindex> -> tensor<64xindex, #row>
  %columns = tile.coord 1 from %id : tensor<64x8xindex, #acc>
  // CHECK: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> i64
  %gathered = tile.gather %ids[%columns] : memref<?xindex>, tensor<64x8xindex, #acc> -> tensor<64x8xindex, #acc>
  %wide = tile.broadcast %rows : tensor<64xindex, #row> -> tensor<64x8xindex, #acc>
  %sum = arith.addi %gathered, %wide : tensor<64x8xindex, #acc>
  // CHECK: llvm.sext %{{.*}} : i32 to i64
  // CHECK: llvm.store {{.*}} {alignment = 8 : i64} : i64, !llvm.ptr<1>
  tile.store %sum to %o[%zero, %n] : tensor<64x8xindex, #acc>, memref<64x?xindex>
  return
}

// One thread stores a number that all have.
// CHECK-LABEL: llvm.func @number
func.func @number(%o: memref<?xi32>, %n: index, %x: i32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
  // CHECK: llvm.cond_br %[[FIRST]]
  // CHECK: llvm.store %{{.*}}, %{{.*}} : i32, !llvm.ptr<1>
  memref.store %x, %o[%n] : memref<?xi32>
  return
}

// Elements of a thread first, then those of the block.
// CHECK-LABEL: llvm.func @votes
func.func @votes(%o: memref<?xi32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %rows = tile.coord 0 from %m : tensor<64x8xindex, #acc>
  %columns = tile.coord 1 from %zero : tensor<64x8xindex, #acc>
  %keep = arith.cmpi sle, %columns, %rows : tensor<64x8xindex, #acc>
  // CHECK-COUNT-3: llvm.or %{{.*}}, %{{.*}} : i1
  // CHECK: nvvm.barrier #nvvm.reduction<or> %{{.*}} -> i32
  %some = tile.vote any %keep : tensor<64x8xi1, #acc>
  // CHECK-COUNT-3: llvm.and %{{.*}}, %{{.*}} : i1
  // CHECK: nvvm.barrier #nvvm.reduction<and> %{{.*}} -> i32
  %all = tile.vote all %keep : tensor<64x8xi1, #acc>
  %both = arith.andi %some, %all : i1
  %number = arith.extui %both : i1 to i32
  memref.store %number, %o[%zero] : memref<?xi32>
  return
}
