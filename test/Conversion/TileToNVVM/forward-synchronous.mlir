// REQUIRES: ptxas
// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm --emit-ptx="ptx=%t.ptx plan=%t.json"
// RUN: ptxas -arch=sm_90a -v %t.ptx -o %t.cubin 2>&1 | FileCheck %s

// The same attention with every product waited for at once, no roles, key tiles of 80 and a mask at the end of the keys; the
// output leaves through shared memory.

// CHECK-NOT: C75
// CHECK: 0 bytes spill stores, 0 bytes spill loads
// CHECK-NOT: C75

#acc = #tile.acc<units = 2>
#row = #tile.row<#acc>
!global = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1]>>
!q = !tile.shared<128x128xbf16, swizzle = 128>
!kv = !tile.shared<80x128xbf16, swizzle = 128>
!scores = tensor<128x80xf32, #acc>
!out = tensor<128x128xf32, #acc>
!row = tensor<128xf32, #row>

func.func @forward(%q: !global, %k: !global, %v: !global, %o: !global, %lse: !lse, %scale: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = [
      [#plan.extent<argument = 0, dim = 2, divisor = 128>], [#plan.extent<argument = 0, dim = 1>],
      [#plan.extent<argument = 0, dim = 0>]]>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %block_m = arith.constant 128 : index
  %block_n = arith.constant 80 : index
  %tile = gpu.block_id x
  %h = gpu.block_id y
  %b = gpu.block_id z
  %m = arith.muli %tile, %block_m : index
  %keys = memref.dim %k, %two : !global
  %qs = tile.alloc_shared : !q
  %ks = tile.alloc_shared : !kv
  %vs = tile.alloc_shared : !kv
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %full = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync

  tile.barrier_expect %q_full bytes 32768 : !tile.barrier<1>
  tile.copy_async %q[%b, %h, %m, %zero] to %qs signal %q_full : !global, !q, !tile.barrier<1>
  tile.barrier_wait %q_full : !tile.barrier<1>
  %minus_inf = arith.constant dense<0xFF800000> : !scores
  %m_init = arith.constant dense<0xFF800000> : !row
  %l_init = arith.constant dense<0.0> : !row
  %o_init = arith.constant dense<0.0> : !out
  %factor = tile.broadcast %scale : f32 -> !scores
  %row_factor = tile.broadcast %scale : f32 -> !row
  %end = tile.broadcast %keys : index -> tensor<128x80xindex, #acc>
  %first = tile.slot : !tile.slot<1>

  %slot_end, %max, %sum, %out = scf.for %n = %zero to %keys step %block_n
      iter_args(%slot = %first, %m_old = %m_init, %l_old = %l_init, %o_old = %o_init)
      -> (!tile.slot<1>, !row, !row, !out) {
    tile.barrier_expect %full[%slot] bytes 40960 : !tile.barrier<1>
    tile.copy_async %k[%b, %h, %n, %zero] to %ks signal %full[%slot] : !global, !kv, !tile.barrier<1>
    tile.copy_async %v[%b, %h, %n, %zero] to %vs signal %full[%slot] : !global, !kv, !tile.barrier<1>
    tile.barrier_wait %full[%slot] : !tile.barrier<1>
    %s_all = tile.mma %qs, %ks {transpose_rhs} : !q, !kv -> !scores
    %column = tile.coord 1 from %n : tensor<128x80xindex, #acc>
    %keep = arith.cmpi slt, %column, %end : tensor<128x80xindex, #acc>
    %s = arith.select %keep, %s_all, %minus_inf : tensor<128x80xi1, #acc>, !scores
    %m_tile = tile.reduce max %s : !scores -> !row
    %m_new = arith.maxnumf %m_old, %m_tile : !row
    %shift_row = arith.mulf %m_new, %row_factor : !row
    %shift = tile.broadcast %shift_row : !row -> !scores
    %scaled = arith.mulf %s, %factor : !scores
    %t = arith.subf %scaled, %shift : !scores
    %e = math.exp2 %t : !scores
    %old_scaled = arith.mulf %m_old, %row_factor : !row
    %decay_log = arith.subf %old_scaled, %shift_row : !row
    %decay = math.exp2 %decay_log : !row
    %l_tile = tile.reduce add %e : !scores -> !row
    %l_kept = arith.mulf %l_old, %decay : !row
    %l_new = arith.addf %l_kept, %l_tile : !row
    %o_decay = tile.broadcast %decay : !row -> !out
    %o_kept = arith.mulf %o_old, %o_decay : !out
    %half = arith.truncf %e : !scores to tensor<128x80xbf16, #acc>
    %p = tile.convert_layout %half : tensor<128x80xbf16, #acc> -> tensor<128x80xbf16, #tile.operand_a<units = 2>>
    %o_new = tile.mma %p, %vs, %o_kept : tensor<128x80xbf16, #tile.operand_a<units = 2>>, !kv, !out -> !out
    // Nobody still reads the tiles when the next ones arrive.
    tile.named_barrier sync %one threads 256
    %next = tile.next %slot : !tile.slot<1>
    scf.yield %next, %m_new, %l_new, %o_new : !tile.slot<1>, !row, !row, !out
  }
  %sums = tile.broadcast %sum : !row -> !out
  %o_f32 = arith.divf %out, %sums : !out
  %o_16 = arith.truncf %o_f32 : !out to tensor<128x128xbf16, #acc>
  tile.store %o_16 to %qs : tensor<128x128xbf16, #acc>, !q
  tile.fence async_shared
  tile.named_barrier sync %one threads 256
  tile.store_async %qs to %o[%b, %h, %m, %zero] : !q, !global
  %ln2 = arith.constant dense<0.693147181> : !row
  %max_log = arith.mulf %max, %row_factor : !row
  %sum_log = math.log2 %sum : !row
  %lse_log = arith.addf %max_log, %sum_log : !row
  %lse_e = arith.mulf %lse_log, %ln2 : !row
  tile.store %lse_e to %lse[%b, %h, %m] : !row, !lse
  tile.store_wait
  return
}
