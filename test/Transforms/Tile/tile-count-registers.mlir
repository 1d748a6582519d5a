// RUN: attn-opt %s --tile-count-registers --remarks-filter=attn --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s

!scores = tensor<64x64xf32, #tile.acc<units = 1>>
!factors = tensor<64x64xbf16, #tile.operand_a<units = 1>>
!numbers = tensor<64x64xi32, #tile.acc<units = 1>>
!place = !tile.shared<64x64xbf16, swizzle = 128>

// Two products take 32 registers each, and the left operand of one 16, which it reads until somebody waits.
// CHECK: role load of product takes 0 of 24 registers
// CHECK: role compute of product takes 80 of 240 registers
func.func @product(%x: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %k = tile.alloc_shared {offset = 0 : i64} : !place
  tile.specialize
  role load warpgroups 1 registers 24 elected {
  }
  role compute warpgroups 1 registers 240 {
    %flying = tile.mma_async %k, %k {transpose_rhs} : !place, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
    %p16 = arith.truncf %s : !scores to tensor<64x64xbf16, #tile.acc<units = 1>>
    %p = tile.convert_layout %p16 : tensor<64x64xbf16, #tile.acc<units = 1>> -> !factors
    %next = tile.mma_async %p, %k : !factors, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %other = tile.mma_async %k, %k {transpose_rhs} : !place, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %done:2 = tile.mma_wait 0, %next, %other : !tile.in_flight<!scores>, !tile.in_flight<!scores>
  }
  return
}

// What a function computes on its way is there for an element at a time, unless threads wait before they use it.
// CHECK: role compute of function takes 32 of 240 registers
func.func @function() attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %k = tile.alloc_shared {offset = 0 : i64} : !place
  tile.specialize
  role load warpgroups 1 registers 24 elected {
  }
  role compute warpgroups 1 registers 240 {
    %flying = tile.mma_async %k, %k {transpose_rhs} : !place, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
    %t = math.tanh %s : !scores
    %square = arith.mulf %t, %t : !scores
    %both = arith.addf %t, %square : !scores
    %used = tile.mma_wait 0, %both : !scores
  }
  return
}

// CHECK: role compute of function_over_a_wait takes 64 of 240 registers
func.func @function_over_a_wait() attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %k = tile.alloc_shared {offset = 0 : i64} : !place
  tile.specialize
  role load warpgroups 1 registers 24 elected {
  }
  role compute warpgroups 1 registers 240 {
    %flying = tile.mma_async %k, %k {transpose_rhs} : !place, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
    %t = math.tanh %s : !scores
    %other = tile.mma_async %k, %k {transpose_rhs} : !place, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %d = tile.mma_wait 0, %other : !tile.in_flight<!scores>
    %both = arith.mulf %t, %d : !scores
    %used = tile.mma_wait 0, %both : !scores
  }
  return
}

// Coordinates make a tile where it is used: it takes nothing.
// CHECK: role compute of coordinates takes 32 of 240 registers
func.func @coordinates(%c0: index, %x: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %k = tile.alloc_shared {offset = 0 : i64} : !place
  tile.specialize
  role load warpgroups 1 registers 24 elected {
  }
  role compute warpgroups 1 registers 240 {
    %i = tile.coord 1 from %c0 : tensor<64x64xindex, #tile.acc<units = 1>>
    %n = arith.index_cast %i : tensor<64x64xindex, #tile.acc<units = 1>> to !numbers
    %f = arith.sitofp %n : !numbers to !scores
    %flying = tile.mma_async %k, %k {transpose_rhs} : !place, !place -> !tile.in_flight<!scores>
    tile.mma_commit
    %s = tile.mma_wait 0, %flying : !tile.in_flight<!scores>
    %both = arith.mulf %f, %s : !scores
    %used = tile.mma_wait 0, %both : !scores
  }
  return
}
