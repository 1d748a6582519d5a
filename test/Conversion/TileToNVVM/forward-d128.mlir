// REQUIRES: ptxas
// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm --emit-ptx="ptx=%t.ptx plan=%t.json"
// RUN: ptxas -arch=sm_90a -v %t.ptx -o %t.cubin 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=PLAN --input-file=%t.json

// Attention forward, D = 128, tiles of 128 rows and 128 keys: one producer warpgroup, two consumers, rings of two stages.
// The product of the next scores is in flight while the values are added and while the softmax runs.

// CHECK-NOT: C75
// CHECK: 0 bytes spill stores, 0 bytes spill loads
// CHECK: Used 168 registers
// CHECK-NOT: C75

// PLAN: "dynamic_shared_bytes": 163912
// PLAN: "name": "forward"
// PLAN: "kind": "tensor_map"

#acc = #tile.acc<units = 2>
#row = #tile.row<#acc>
#quad = #tile.quad<#acc>
#a = #tile.operand_a<units = 2>
!global = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1]>>
!tile = !tile.shared<128x128xbf16, swizzle = 128>
!ring = !tile.shared<128x128xbf16, swizzle = 128, stages = 2>
!scores = tensor<128x128xf32, #acc>
!p = tensor<128x128xbf16, #a>
!row = tensor<128xf32, #row>
!quad = tensor<128x4xf32, #quad>

func.func @forward(%q: !global, %k: !global, %v: !global, %o: !global, %lse: !lse, %scale: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 3, grid = [
      [#plan.extent<argument = 0, dim = 2, divisor = 128>], [#plan.extent<argument = 0, dim = 1>],
      [#plan.extent<argument = 0, dim = 0>]]>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %block = arith.constant 128 : index
  %tile = gpu.block_id x
  %h = gpu.block_id y
  %b = gpu.block_id z
  %m = arith.muli %tile, %block : index
  %keys = memref.dim %k, %two : !global
  %tiles = arith.ceildivui %keys, %block : index
  %qs = tile.alloc_shared : !tile
  %ks = tile.alloc_shared : !ring
  %vs = tile.alloc_shared : !ring
  %q_full = tile.barrier_init 1 : !tile.barrier<1>
  %k_full = tile.barrier_init 1 : !tile.barrier<2>
  %v_full = tile.barrier_init 1 : !tile.barrier<2>
  %k_empty = tile.barrier_init 2 : !tile.barrier<2>
  %v_empty = tile.barrier_init 2 : !tile.barrier<2>
  tile.sync

  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_expect %q_full bytes 32768 : !tile.barrier<1>
    tile.copy_async %q[%b, %h, %m, %zero] to %qs signal %q_full : !global, !tile, !tile.barrier<1>
    %first = tile.slot : !tile.slot<2>
    scf.for %j = %zero to %tiles step %one iter_args(%slot = %first) -> !tile.slot<2> {
      %n = arith.muli %j, %block : index
      tile.barrier_wait previous %k_empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %k_full[%slot] bytes 32768 : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      tile.copy_async %k[%b, %h, %n, %zero] to %kj signal %k_full[%slot] : !global, !tile, !tile.barrier<2>
      tile.barrier_wait previous %v_empty[%slot] : !tile.barrier<2>
      tile.barrier_expect %v_full[%slot] bytes 32768 : !tile.barrier<2>
      %vj = tile.stage %vs[%slot] : !ring
      tile.copy_async %v[%b, %h, %n, %zero] to %vj signal %v_full[%slot] : !global, !tile, !tile.barrier<2>
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next : !tile.slot<2>
    }
  }
  role consumer warpgroups 2 registers 240 {
    %factor = tile.broadcast %scale : f32 -> !scores
    %row_factor = tile.broadcast %scale : f32 -> !row
    %first = tile.slot : !tile.slot<2>
    %no_output = arith.constant dense<0.0> : !scores
    tile.barrier_wait %q_full : !tile.barrier<1>

    // The first tile of keys.
    tile.barrier_wait %k_full[%first] : !tile.barrier<2>
    %k0 = tile.stage %ks[%first] : !ring
    %s0_flying = tile.mma_async %qs, %k0 {transpose_rhs} : !tile, !tile -> !tile.in_flight<!scores>
    tile.mma_commit
    %s0 = tile.mma_wait 0, %s0_flying : !tile.in_flight<!scores>
    tile.barrier_arrive %k_empty[%first] : !tile.barrier<2>
    %max0 = tile.reduce max %s0 : !scores -> !row
    %shift0_row = arith.mulf %max0, %row_factor : !row
    %neg0_row = arith.negf %shift0_row : !row
    %neg0 = tile.broadcast %neg0_row : !row -> !scores
    %t0 = math.fma %s0, %factor, %neg0 : !scores
    %e0 = math.exp2 %t0 : !scores
    %sum0 = tile.reduce add %e0 : !scores -> !quad
    %h0 = arith.truncf %e0 : !scores to tensor<128x128xbf16, #acc>
    %p0 = tile.convert_layout %h0 : tensor<128x128xbf16, #acc> -> !p
    %second = tile.next %first : !tile.slot<2>

    %k_end, %v_slot, %max, %sum, %out, %p = scf.for %j = %one to %tiles step %one
        iter_args(%slot = %second, %before = %first, %m_old = %max0, %l_old = %sum0, %o_old = %no_output, %p_old = %p0)
        -> (!tile.slot<2>, !tile.slot<2>, !row, !quad, !scores, !p) {
      tile.barrier_wait %k_full[%slot] : !tile.barrier<2>
      %kj = tile.stage %ks[%slot] : !ring
      %s_flying = tile.mma_async %qs, %kj {transpose_rhs} : !tile, !tile -> !tile.in_flight<!scores>
      tile.mma_commit
      tile.barrier_wait %v_full[%before] : !tile.barrier<2>
      %vj = tile.stage %vs[%before] : !ring
      %o_flying = tile.mma_async %p_old, %vj, %o_old : !p, !tile, !scores -> !tile.in_flight<!scores>
      tile.mma_commit
      %s = tile.mma_wait 1, %s_flying : !tile.in_flight<!scores>
      tile.barrier_arrive %k_empty[%slot] : !tile.barrier<2>

      %m_tile = tile.reduce max %s : !scores -> !row
      %m_new = arith.maxnumf %m_old, %m_tile : !row
      %shift_row = arith.mulf %m_new, %row_factor : !row
      %neg_row = arith.negf %shift_row : !row
      %neg = tile.broadcast %neg_row : !row -> !scores
      %t = math.fma %s, %factor, %neg : !scores
      %e = math.exp2 %t : !scores
      %decay_log = math.fma %m_old, %row_factor, %neg_row : !row
      %decay = math.exp2 %decay_log : !row
      %l_tile = tile.reduce add %e : !scores -> !quad
      %l_decay = tile.broadcast %decay : !row -> !quad
      %l_new = math.fma %l_old, %l_decay, %l_tile : !quad

      // The product in flight reads %p_old: the next probabilities must not take its registers before it is done.
      %o_now, %e_now = tile.mma_wait 0, %o_flying, %e : !tile.in_flight<!scores>, !scores
      tile.barrier_arrive %v_empty[%before] : !tile.barrier<2>
      %half = arith.truncf %e_now : !scores to tensor<128x128xbf16, #acc>
      %p_new = tile.convert_layout %half : tensor<128x128xbf16, #acc> -> !p
      %o_decay = tile.broadcast %decay : !row -> !scores
      %o_new = arith.mulf %o_now, %o_decay : !scores
      %next = tile.next %slot : !tile.slot<2>
      scf.yield %next, %slot, %m_new, %l_new, %o_new, %p_new
          : !tile.slot<2>, !tile.slot<2>, !row, !quad, !scores, !p
    }

    // The last tile of values, the division, the log-sum-exp.
    tile.barrier_wait %v_full[%v_slot] : !tile.barrier<2>
    %v_last = tile.stage %vs[%v_slot] : !ring
    %o_flying = tile.mma_async %p, %v_last, %out : !p, !tile, !scores -> !tile.in_flight<!scores>
    tile.mma_commit
    %sums = tile.reduce add %sum : !quad -> !row
    %o_sum = tile.mma_wait 0, %o_flying : !tile.in_flight<!scores>
    %sums_tile = tile.broadcast %sums : !row -> !scores
    %o_f32 = arith.divf %o_sum, %sums_tile : !scores
    %o_16 = arith.truncf %o_f32 : !scores to tensor<128x128xbf16, #acc>
    tile.store %o_16 to %o[%b, %h, %m, %zero] : tensor<128x128xbf16, #acc>, !global
    %ln2 = arith.constant dense<0.693147181> : !row
    %max_log = arith.mulf %max, %row_factor : !row
    %sum_log = math.log2 %sums : !row
    %lse_log = arith.addf %max_log, %sum_log : !row
    %lse_e = arith.mulf %lse_log, %ln2 : !row
    tile.store %lse_e to %lse[%b, %h, %m] : !row, !lse
  }
  return
}
