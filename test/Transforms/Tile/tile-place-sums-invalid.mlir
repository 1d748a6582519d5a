// RUN: attn-opt %s --tile-place-sums --split-input-file --verify-diagnostics

#acc = #tile.acc<units = 1, product = "tcgen05">
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>

// The sum before the second product is read after it.
module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @replaced(%q: !q, %k: !k, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
  }
  role consumer warpgroups 1 registers 240 {
    %a = tile.mma %q, %k {transpose_rhs} : !q, !k -> tensor<128x64xf32, #acc>
    %b = tile.mma %q, %k, %a {transpose_rhs} : !q, !k, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
    // expected-error@+1 {{expected the current sum, got one that another has replaced (each sum has one place in tensor memory)}}
    tile.store %a to %o[%c0, %c0] : tensor<128x64xf32, #acc>, memref<?x64xf32>
    tile.store %b to %o[%c0, %c0] : tensor<128x64xf32, #acc>, memref<?x64xf32>
  }
  return
}
}

// -----

#acc = #tile.acc<units = 1, product = "tcgen05">
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>

// In the second turn, another sum is there.
module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @second_turn(%q: !q, %k: !k, %n: index, %o: memref<?x64xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
  }
  role consumer warpgroups 1 registers 240 {
    %a = tile.mma %q, %k {transpose_rhs} : !q, !k -> tensor<128x64xf32, #acc>
    scf.for %i = %c0 to %n step %c1 {
      // expected-error@+1 {{expected the current sum}}
      %b = tile.mma %q, %k, %a {transpose_rhs} : !q, !k, tensor<128x64xf32, #acc> -> tensor<128x64xf32, #acc>
      tile.store %b to %o[%c0, %c0] : tensor<128x64xf32, #acc>, memref<?x64xf32>
    }
  }
  return
}
}

// -----

#acc = #tile.acc<units = 1, product = "tcgen05">
!q = !tile.shared<128x64xbf16, swizzle = 128>
!k = !tile.shared<64x64xbf16, swizzle = 128>

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @without_role(%q: !q, %k: !k) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected a role around a product in tensor memory}}
  %a = tile.mma %q, %k {transpose_rhs} : !q, !k -> tensor<128x64xf32, #acc>
  return
}
}
