// RUN: attn-opt %s --tile-pipeline-steps | FileCheck %s

// Whoever reads the accumulator finds all products in it: a delayed one comes before.

!s = tensor<64x32xf32>
!p = tensor<64x32xbf16>
!v = tensor<32x64xbf16>
!o = tensor<64x64xf32>
!kernel = memref<?x64xbf16>

// CHECK-LABEL: func.func @another_product
func.func @another_product(%p: !p, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v0 = tile.load %v[%c0, %c0] : !kernel -> !v
  %o0 = tile.mma %p, %v0, %none : !p, !v, !o -> !o
  // CHECK: scf.for {{.*}} iter_args(%[[ACC:[^ ]*]] =
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    // CHECK: %[[NOW:.*]] = tile.mma {{.*}}, %[[ACC]]
    // CHECK: tile.mma {{.*}}, %[[NOW]]
    %vj = tile.load %v[%j, %c0] : !kernel -> !v
    %other = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
    %sum = arith.addf %other, %acc : !o
    %oj = tile.mma %p, %vj, %sum : !p, !v, !o -> !o
    scf.yield %oj : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// Without the step the accumulator is not what it was: nothing is delayed.
// CHECK-LABEL: func.func @other_branch
func.func @other_branch(%p: !p, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o, %live: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v0 = tile.load %v[%c0, %c0] : !kernel -> !v
  %o0 = tile.mma %p, %v0, %none : !p, !v, !o -> !o
  // CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:[^ ]*]] = %{{[^,]*}}) -> (tensor<64x64xf32>)
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    %step = scf.if %live -> !o {
      %vj = tile.load %v[%j, %c0] : !kernel -> !v
      %oj = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
      scf.yield %oj : !o
    } else {
      %twice = arith.addf %acc, %acc : !o
      scf.yield %twice : !o
    }
    scf.yield %step : !o
  }
  // CHECK: tile.store %[[R]]
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// Outside of the branch the accumulator is read too.
// CHECK-LABEL: func.func @outside
func.func @outside(%p: !p, %v: !kernel, %o: memref<?x64xf32>, %n: index, %none: !o, %live: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v0 = tile.load %v[%c0, %c0] : !kernel -> !v
  %o0 = tile.mma %p, %v0, %none : !p, !v, !o -> !o
  // CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:[^ ]*]] = %{{[^,]*}}) -> (tensor<64x64xf32>)
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    tile.store %acc to %o[%j, %c0] : !o, memref<?x64xf32>
    %step = scf.if %live -> !o {
      %vj = tile.load %v[%j, %c0] : !kernel -> !v
      %oj = tile.mma %p, %vj, %acc : !p, !v, !o -> !o
      scf.yield %oj : !o
    } else {
      scf.yield %acc : !o
    }
    scf.yield %step : !o
  }
  // CHECK: tile.store %[[R]]
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}
