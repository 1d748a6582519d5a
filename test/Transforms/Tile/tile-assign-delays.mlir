// RUN: attn-opt %s --tile-assign-delays | FileCheck %s

!s = tensor<64x32xf32>
!p = tensor<64x32xbf16>
!v = tensor<32x64xbf16>
!o = tensor<64x64xf32>
!kernel = memref<?x64xbf16>

// A step on its own, then a loop. Both products with weights are late, with their loads; a tile that others read too is loaded once more.
// CHECK-LABEL: func.func @chain
func.func @chain(%q: tensor<64x64xbf16>, %k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  // CHECK: tile.mma {{.*}} {transpose_rhs}
  // CHECK: %[[P:.*]] = arith.truncf %{{[^ ]*}} :
  // CHECK: %[[V:.*]] = tile.load {{.*}} {tile.delay = 1 : i64}
  // CHECK: %[[C:.*]] = tile.clear_unread %[[V]] by %[[P]] if %true {tile.delay = 1 : i64}
  // CHECK: %[[O:.*]] = tile.mma %[[P]], %[[C]], %{{.*}} {tile.delay = 1 : i64}
  %k0 = tile.load %k[%c0, %c0] : !kernel -> !v
  %s0 = tile.mma %q, %k0 {transpose_rhs} : tensor<64x64xbf16>, !v -> !s
  %p0 = arith.truncf %s0 : !s to !p
  %v0 = tile.load %v[%c0, %c0] : !kernel -> !v
  %z0 = tile.clear_unread %v0 by %p0 : !v, !p -> !v
  %o0 = tile.mma %p0, %z0, %none : !p, !v, !o -> !o
  // CHECK: scf.for
  // CHECK: %[[V:.*]] = tile.load {{.*}} {tile.delay = 1 : i64}
  // CHECK: %[[BOTH:.*]] = tile.load {{.*}}] :
  // CHECK: tile.mma %{{.*}}, %[[BOTH]] {transpose_rhs}
  // CHECK: %[[P:.*]] = arith.truncf
  // CHECK: %[[C:.*]] = tile.clear_unread %[[V]] by %[[P]] if %false {tile.delay = 1 : i64}
  // CHECK: tile.mma %[[P]], %[[C]], %{{.*}} {tile.delay = 1 : i64}
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    %vj = tile.load %v[%j, %c0] : !kernel -> !v
    %s = tile.mma %q, %vj {transpose_rhs} : tensor<64x64xbf16>, !v -> !s
    %p = arith.truncf %s : !s to !p
    %oj = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
    scf.yield %oj : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// Nothing is late: a loop that may run never has nothing before it,
// CHECK-LABEL: func.func @may_not_run
// CHECK-NOT: tile.delay
func.func @may_not_run(%q: tensor<64x64xbf16>, %k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %j = %c0 to %n step %c32 iter_args(%acc = %none) -> !o {
    %kj = tile.load %k[%j, %c0] : !kernel -> !v
    %s = tile.mma %q, %kj {transpose_rhs} : tensor<64x64xbf16>, !v -> !s
    %p = arith.truncf %s : !s to !p
    %vj = tile.load %v[%j, %c0] : !kernel -> !v
    %oj = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
    scf.yield %oj : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// a lhs from memory is there in time,
// CHECK-LABEL: func.func @loaded_lhs
// CHECK-NOT: tile.delay
func.func @loaded_lhs(%k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %none: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %r = scf.for %j = %c0 to %c96 step %c32 iter_args(%acc = %none) -> !o {
    %kj = tile.load %k[%j, %c0] : !kernel -> tensor<64x64xbf16>
    %vj = tile.load %v[%j, %c0] : !kernel -> tensor<64x64xbf16>
    %oj = tile.mma %kj, %vj, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, !o -> !o
    scf.yield %oj : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// somebody else reads the sum outside of the branch that makes it,
// CHECK-LABEL: func.func @read_outside
// CHECK-NOT: tile.delay
func.func @read_outside(%q: tensor<64x64xbf16>, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o, %live: i1, %s: !s) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %p0 = arith.truncf %s : !s to !p
  %v0 = tile.load %v[%c0, %c0] : !kernel -> !v
  %o0 = tile.mma %p0, %v0, %none : !p, !v, !o -> !o
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    tile.store %acc to %o[%j, %c0] : !o, memref<?x64xf32>
    %step = scf.if %live -> !o {
      %vj = tile.load %v[%j, %c0] : !kernel -> !v
      %sj = tile.mma %q, %vj {transpose_rhs} : tensor<64x64xbf16>, !v -> !s
      %p = arith.truncf %sj : !s to !p
      %oj = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
      scf.yield %oj : !o
    } else {
      scf.yield %acc : !o
    }
    scf.yield %step : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// or without the step the sum is not what it was.
// CHECK-LABEL: func.func @other_branch
// CHECK-NOT: tile.delay
func.func @other_branch(%q: tensor<64x64xbf16>, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o, %live: i1, %s: !s) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %p0 = arith.truncf %s : !s to !p
  %v0 = tile.load %v[%c0, %c0] : !kernel -> !v
  %o0 = tile.mma %p0, %v0, %none : !p, !v, !o -> !o
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    %step = scf.if %live -> !o {
      %vj = tile.load %v[%j, %c0] : !kernel -> !v
      %sj = tile.mma %q, %vj {transpose_rhs} : tensor<64x64xbf16>, !v -> !s
      %p = arith.truncf %sj : !s to !p
      %oj = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
      scf.yield %oj : !o
    } else {
      %twice = arith.addf %acc, %acc : !o
      scf.yield %twice : !o
    }
    scf.yield %step : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}
