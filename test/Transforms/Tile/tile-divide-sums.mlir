// RUN: attn-opt %s --tile-divide-sums | FileCheck %s
// RUN: attn-opt %s --tile-divide-sums --tile-assign-roles --tile-make-rings --tile-overlap-mma --tile-outline-roles --canonicalize --cse | FileCheck %s --check-prefix=ROLES

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!row = !tile.shared<64xf32>
#acc = #tile.acc<units = 1>
!acc = tensor<64x64xf32, #acc>
!narrow = tensor<64x64xbf16, #acc>
!lhs = tensor<64x64xbf16, #tile.operand_a<units = 1>>

// The sum of values has no product of its own: its role has what both need, and gives the weights.
// CHECK-LABEL: func.func @divided
// CHECK-NOT:     tile.divided
// CHECK-SAME:    tile.roles = [#tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>,
// CHECK-SAME:      #tile.role<name = "giver", warpgroups = 1, registers = 240>, #tile.role<name = "taker", warpgroups = 1, registers = 240>]
// CHECK:         %[[PLACE:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
// ROLES-LABEL: func.func @divided
func.func @divided(%q: !global, %o: !global, %dk: !global, %dv: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <stages = 2>>, tile.divided} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !acc
  %k = tile.alloc_shared : !tile
  %v = tile.alloc_shared : !tile
  %qs = tile.alloc_shared : !tile
  %os = tile.alloc_shared : !tile
  tile.copy %q[%c0, %c0] to %k : !global, !tile
  tile.copy %o[%c0, %c0] to %v : !global, !tile
  // CHECK: scf.for
  %sums:2 = scf.for %i = %c0 to %n step %c64 iter_args(%sk = %zero, %sv = %zero) -> (!acc, !acc) {
    tile.copy %q[%i, %c0] to %qs : !global, !tile
    tile.copy %o[%i, %c0] to %os : !global, !tile
    // CHECK: tile.mma {{.*}}tile.role = "giver"
    %s = tile.mma %k, %qs {transpose_rhs} : !tile, !tile -> !acc
    // CHECK: tile.mma {{.*}}tile.role = "taker"
    %t = tile.mma %v, %os {transpose_rhs} : !tile, !tile -> !acc
    %e = math.exp2 %s : !acc
    // CHECK: %[[W:.*]] = arith.truncf
    %w = arith.truncf %e : !acc to !narrow
    // CHECK-NEXT: tile.store %[[W]] to %[[PLACE]] {tile.role = "giver"}
    // CHECK-NEXT: %[[TAKEN:.*]] = tile.load_shared %[[PLACE]] {tile.role = "taker"}
    // CHECK: tile.convert_layout %[[W]]
    %a = tile.convert_layout %w : !narrow -> !lhs
    // CHECK: tile.mma {{.*}}tile.role = "giver"
    %nv = tile.mma %a, %os, %sv : !lhs, !tile, !acc -> !acc
    // CHECK: arith.extf %[[TAKEN]]
    %p = arith.extf %w : !narrow to !acc
    %d = arith.mulf %p, %t : !acc
    %dn = arith.truncf %d : !acc to !narrow
    %b = tile.convert_layout %dn : !narrow -> !lhs
    // CHECK: tile.mma {{.*}}tile.role = "taker"
    %nk = tile.mma %b, %qs, %sk : !lhs, !tile, !acc -> !acc
    scf.yield %nk, %nv : !acc, !acc
  }
  // CHECK: tile.store {{.*}}tile.role = "taker"
  %rk = arith.truncf %sums#0 : !acc to !narrow
  tile.store %rk to %dk[%c0, %c0] : !narrow, !global
  // CHECK: tile.store {{.*}}tile.role = "giver"
  %rv = arith.truncf %sums#1 : !acc to !narrow
  tile.store %rv to %dv[%c0, %c0] : !narrow, !global
  return
}

// No product reads what is handed over: no fence, and each thread says that it has written or read its part.
// ROLES:       role giver
// ROLES:         math.exp2
// ROLES:         tile.barrier_wait previous
// ROLES:         tile.store %{{.*}} to %{{.*}} : tensor<64x64xbf16
// ROLES-NEXT:    tile.barrier_arrive {{.*}} {each}
// ROLES:         tile.mma_async
// ROLES-NOT:     tile.load_shared
// ROLES:       role taker
// ROLES-NOT:     math.exp2
// ROLES:         tile.mma_async
// ROLES:         tile.barrier_wait
// ROLES:         tile.load_shared
// ROLES:         tile.barrier_arrive {{.*}} {each}
// ROLES:         tile.mma_async
