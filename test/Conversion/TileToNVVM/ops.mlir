// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// What each op becomes, one small kernel per theme.

#acc = #tile.acc<units = 1>
#row = #tile.row<#acc>
#quad = #tile.quad<#acc>
#a = #tile.operand_a<units = 1>
!global = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!shared = !tile.shared<64x64xbf16, swizzle = 128>

// The parameters are what the body needs of its arguments; the plan says which.
// CHECK: llvm.mlir.global external @attn_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @parameters(
// CHECK-SAME: !llvm.ptr<1>, %{{.*}}: i32, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: f32, %{{.*}}: i32)
// CHECK-SAME: nvvm.kernel, nvvm.maxnreg = 255 : i32, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 128, 1, 1>
// CHECK-SAME: tile.plan = {block = [128, 1, 1], cluster = [1, 1, 1], dynamic_shared_bytes = 0 : i64
// CHECK-SAME: grid = {{\[\[}}{argument = 0 : i64, dim = 1 : i64, divisor = 64 : i64}], [{constant = 7 : i64}], []]
func.func @parameters(%o: !global, %x: f32, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 1, divisor = 64>], [7]]>} {
  %b = gpu.block_id x
  // Rows below the bound are stored, pairs of columns at once.
  // CHECK: nvvm.read.ptx.sreg.ctaid.x
  // CHECK: llvm.icmp "sgt"
  // CHECK: llvm.cond_br
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
  %t = arith.constant dense<1.0> : tensor<64x64xbf16, #acc>
  %zero = arith.constant 0 : index
  tile.store %t to %o[%b, %n, %zero] : tensor<64x64xbf16, #acc>, !global
  return
}

// CHECK-LABEL: llvm.func @position
// CHECK:       nvvm.read.ptx.sreg.ctaid.y
// CHECK:       nvvm.read.ptx.sreg.nctaid.x
// CHECK:       nvvm.read.ptx.sreg.nctaid.z
func.func @position(%o: memref<?xi32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %y = gpu.block_id y
  %x = gpu.grid_dim x
  %z = gpu.grid_dim z
  %xz = arith.addi %x, %z : index
  %sum = arith.addi %xz, %y : index
  %number = arith.index_cast %sum : index to i32
  %t = tile.broadcast %number : i32 -> tensor<64xi32, #tile.row<#acc>>
  tile.store %t to %o[%sum] : tensor<64xi32, #tile.row<#acc>>, memref<?xi32>
  return
}

// CHECK-LABEL: llvm.func @rows
func.func @rows(%o: memref<?xf32>, %i: index, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t = tile.broadcast %x : f32 -> tensor<64x16xf32, #acc>
  // Four elements of each of two rows, then the quad.
  // CHECK-COUNT-3: llvm.intr.maxnum
  // CHECK-COUNT-3: llvm.intr.maxnum
  // CHECK: nvvm.shfl.sync bfly
  // CHECK: nvvm.shfl.sync bfly
  // CHECK: nvvm.shfl.sync bfly
  // CHECK: nvvm.shfl.sync bfly
  %m = tile.reduce max %t : tensor<64x16xf32, #acc> -> tensor<64xf32, #row>
  // Without the quad there is nothing to exchange.
  // CHECK-NOT: nvvm.shfl
  // CHECK: llvm.fadd
  %l = tile.reduce add %t : tensor<64x16xf32, #acc> -> tensor<64x4xf32, #quad>
  // CHECK: nvvm.shfl.sync bfly
  %s = tile.reduce add %l : tensor<64x4xf32, #quad> -> tensor<64xf32, #row>
  // CHECK: nvvm.rcp.approx.ftz.f
  %r = arith.divf %m, %s : tensor<64xf32, #row>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  %e = math.exp2 %r : tensor<64xf32, #row>
  // One lane of each quad stores.
  // CHECK: llvm.cond_br
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<1>
  tile.store %e to %o[%i] : tensor<64xf32, #row>, memref<?xf32>
  return
}

// A 16-bit accumulator is an A operand: two conversions per step, nothing else.
// CHECK-LABEL: llvm.func @products
func.func @products(%o: memref<?x64xf32, strided<[64, 1]>>, %i: index, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %v = tile.alloc_shared : !tile.shared<16x64xbf16, swizzle = 128>
  %t = tile.broadcast %x : f32 -> tensor<64x16xf32, #acc>
  // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"
  %h = arith.truncf %t : tensor<64x16xf32, #acc> to tensor<64x16xbf16, #acc>
  %p = tile.convert_layout %h : tensor<64x16xbf16, #acc> -> tensor<64x16xbf16, #a>
  // The descriptor: swizzle 128, stride 1024, leading dimension 2048 bytes. Registers were written: behind a fence.
  // CHECK: llvm.ptrtoint
  // CHECK: llvm.mlir.constant(4611686293313683456 : i64)
  // CHECK: llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, 0, 0;\0A\09wgmma.fence.sync.aligned;\0A\09wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
  %f = tile.mma_async %p, %v : tensor<64x16xbf16, #a>, !tile.shared<16x64xbf16, swizzle = 128>
      -> !tile.in_flight<tensor<64x64xf32, #acc>>
  // CHECK: llvm.inline_asm has_side_effects "wgmma.commit_group.sync.aligned;", "~{memory}"
  tile.mma_commit
  // CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f
  %s = tile.mma_wait 0, %f : !tile.in_flight<tensor<64x64xf32, #acc>>
  %c0 = arith.constant 0 : index
  tile.store %s to %o[%i, %c0] : tensor<64x64xf32, #acc>, memref<?x64xf32, strided<[64, 1]>>
  return
}

// One thread runs the producer, without conditions around its ops; a warpgroup arrives once.
// CHECK-LABEL: llvm.func @roles
// CHECK-SAME: llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
func.func @roles(%k: !global, %i: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.alloc_shared : !shared
  // CHECK: nvvm.mbarrier.init
  %full = tile.barrier_init 1 : !tile.barrier<1>
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: nvvm.barrier0
  tile.sync
  tile.specialize
  // CHECK: nvvm.setmaxregister decrease 40
  // CHECK: nvvm.elect.sync
  role producer warpgroups 1 registers 40 elected {
    // CHECK: nvvm.mbarrier.arrive.expect_tx
    tile.barrier_expect %full bytes 8192 : !tile.barrier<1>
    // CHECK-NOT: llvm.cond_br
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} {isCTAOnly = true}
    tile.copy_async %k[%i, %zero, %zero] to %s signal %full : !global, !shared, !tile.barrier<1>
  }
  // CHECK: nvvm.setmaxregister decrease 232
  role consumer warpgroups 1 registers 232 {
    // CHECK: nvvm.mbarrier.try_wait
    // CHECK: llvm.cond_br
    tile.barrier_wait %full : !tile.barrier<1>
    %id = tile.warpgroup
    // CHECK: nvvm.barrier id =
    tile.named_barrier sync %id threads 128
    // CHECK: llvm.inline_asm has_side_effects "bar.arrive $0, $1;"
    tile.named_barrier arrive %id threads 128
    // CHECK: nvvm.fence.proxy
    tile.fence async_shared
    // CHECK: llvm.cond_br
    // CHECK: nvvm.mbarrier.arrive
    tile.barrier_arrive %full : !tile.barrier<1>
    // CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
    tile.store_wait
  }
  return
}
