// RUN: attn-opt %s --tile-pipeline-steps | FileCheck %s

!t = tensor<64x64xf32>
!m = memref<?x64xf32>
!p = tensor<64x32xbf16>
!v = tensor<32x64xbf16>

// What is two turns late goes through two values; nothing is there to add in the first two turns, or after a loop that has not run.
// CHECK-LABEL: func.func @two_turns
func.func @two_turns(%a: !m, %o: !m, %n: index, %x: !t) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[R:.*]]:4 = scf.for %[[J:.*]] = %c0 {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[IN:.*]] = %{{.*}}, %[[E:.*]] = %{{.*}}, %[[ANY:.*]] = %false)
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    // CHECK: %[[SECOND:.*]] = arith.cmpi ne, %[[J]], %c0
    // CHECK: %[[LATE:.*]]:3 = scf.if %[[SECOND]]
    // CHECK:   %[[NOW:.*]] = scf.if %[[ANY]]
    // CHECK:     arith.addf %[[SUM]], %[[E]]
    // CHECK:   %[[NEXT:.*]] = math.exp2 %[[IN]]
    // CHECK:   scf.yield %[[NOW]], %[[NEXT]], %true
    // CHECK: else
    // CHECK:   scf.yield %[[SUM]], %[[E]], %[[ANY]]
    // CHECK: %[[LOADED:.*]] = tile.load
    // CHECK: scf.yield %[[LATE]]#0, %[[LOADED]], %[[LATE]]#1, %[[LATE]]#2
    %in = tile.load %a[%j, %c0] : !m -> !t
    %e = math.exp2 %in {tile.delay = 1} : !t
    %s = arith.addf %sum, %e {tile.delay = 2} : !t
    scf.yield %s : !t
  }
  // CHECK: %[[LAST:.*]] = scf.if %[[R]]#3
  // CHECK:   arith.addf %[[R]]#0, %[[R]]#2
  // CHECK: %[[RUNS:.*]] = arith.cmpi slt, %c0, %{{.*}}
  // CHECK: %[[ALL:.*]] = scf.if %[[RUNS]]
  // CHECK:   %[[E:.*]] = math.exp2 %[[R]]#1
  // CHECK:   arith.addf %[[LAST]], %[[E]]
  // CHECK: else
  // CHECK:   scf.yield %[[LAST]]
  // CHECK: tile.store %[[ALL]]
  tile.store %r to %o[%c0, %c0] : !t, !m
  return
}

// Turns are those in which the op would have run: what there is to do stays where the condition does not hold.
// CHECK-LABEL: func.func @condition
func.func @condition(%a: !m, %o: !m, %n: index, %x: !t, %c: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[IN:.*]] = %{{.*}}, %[[ANY:.*]] = %false)
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    // CHECK: scf.if %{{.*}} -> (tensor<64x64xf32>, tensor<64x64xf32>, i1)
    // CHECK:   scf.if %[[ANY]]
    // CHECK:     arith.addf %[[SUM]], %[[IN]]
    // CHECK:   %[[LOADED:.*]] = tile.load
    // CHECK:   scf.yield %{{.*}}, %[[LOADED]], %true
    // CHECK: else
    // CHECK-NEXT: scf.yield %[[SUM]], %[[IN]], %[[ANY]]
    %step = scf.if %c -> !t {
      %in = tile.load %a[%j, %c0] : !m -> !t
      %s = arith.addf %sum, %in {tile.delay = 1} : !t
      scf.yield %s : !t
    } else {
      scf.yield %sum : !t
    }
    scf.yield %step : !t
  }
  // CHECK: scf.if %[[R]]#2
  tile.store %r to %o[%c0, %c0] : !t, !m
  return
}

// Late ops may write memory that nobody else touches.
// CHECK-LABEL: func.func @store
func.func @store(%a: !m, %o: !m, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[R:.*]]:2 = scf.for %[[J:.*]] = %c0 {{.*}} iter_args(%[[IN:.*]] = %{{.*}}, %[[AT:.*]] = %c0)
  scf.for %j = %c0 to %n step %c64 {
    // CHECK: scf.if
    // CHECK:   tile.store %[[IN]] to %{{.*}}[%[[AT]], %c0]
    // CHECK: %[[LOADED:.*]] = tile.load
    // CHECK: scf.yield %[[LOADED]], %[[J]]
    %in = tile.load %a[%j, %c0] : !m -> !t
    tile.store %in to %o[%j, %c0] {tile.delay = 1} : !t, !m
  }
  // CHECK: scf.if
  // CHECK:   tile.store %[[R]]#0 to %{{.*}}[%[[R]]#1, %c0]
  return
}

// The second loop begins with what the first has left, if that has run; the third does something else.
// CHECK-LABEL: func.func @chain
func.func @chain(%a: !m, %o: !m, %n: index, %x: !t) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[A:.*]]:2 = scf.for
  // CHECK: %[[RUNS:.*]] = arith.cmpi slt
  // CHECK: %[[B:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %[[A]]#0, %{{.*}} = %[[A]]#1, %{{.*}} = %[[RUNS]])
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %in = tile.load %a[%j, %c0] : !m -> !t
    %s = arith.addf %sum, %in {tile.delay = 1} : !t
    scf.yield %s : !t
  }
  %q = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %r) -> !t {
    %in = tile.load %a[%j, %c0] : !m -> !t
    %s = arith.addf %sum, %in {tile.delay = 1} : !t
    scf.yield %s : !t
  }
  // CHECK: %[[LAST:.*]] = scf.if %[[B]]#2
  // CHECK:   arith.addf %[[B]]#0, %[[B]]#1
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[LAST]],
  %p = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %q) -> !t {
    %in = tile.load %a[%j, %c0] : !m -> !t
    %s = arith.mulf %sum, %in {tile.delay = 1} : !t
    scf.yield %s : !t
  }
  // CHECK: scf.if
  // CHECK:   arith.mulf
  tile.store %p to %o[%c0, %c0] : !t, !m
  return
}

// Loops that read different memory do nothing for each other: there is no memory that the first turn could read instead.
// CHECK-LABEL: func.func @other_memory
func.func @other_memory(%a: !m, %b: !m, %o: !m, %n: index, %x: !t) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[A:.*]]:2 = scf.for
  // CHECK: arith.cmpi slt
  // CHECK: %[[LAST:.*]] = scf.if
  // CHECK:   tile.load %arg0[%[[A]]#1, %c0]
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %in = tile.load %a[%j, %c0] {tile.delay = 1} : !m -> !t
    %s = arith.addf %sum, %in {tile.delay = 1} : !t
    scf.yield %s : !t
  }
  // CHECK: %[[B:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[LAST]], %{{.*}} = %c0)
  // CHECK: scf.if
  // CHECK:   tile.load %arg1[%[[B]]#1, %c0]
  %q = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %r) -> !t {
    %in = tile.load %b[%j, %c0] {tile.delay = 1} : !m -> !t
    %s = arith.addf %sum, %in {tile.delay = 1} : !t
    scf.yield %s : !t
  }
  tile.store %q to %o[%c0, %c0] : !t, !m
  return
}

// Nobody in the loop reads the sum: the last one is enough.
// CHECK-LABEL: func.func @unread
func.func @unread(%a: !m, %o: !m, %n: index, %x: !t) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: scf.for
  // CHECK-NOT: math.exp2
  // CHECK: tile.load
  // CHECK: scf.if
  // CHECK: math.exp2
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %in = tile.load %a[%j, %c0] : !m -> !t
    %e = math.exp2 %in {tile.delay = 3} : !t
    scf.yield %e : !t
  }
  tile.store %r to %o[%c0, %c0] : !t, !m
  return
}

// Whoever reads the accumulator finds all products in it: a late one comes before.
// CHECK-LABEL: func.func @another_product
func.func @another_product(%p: !p, %v: memref<?x64xbf16>, %o: !m, %n: index, %none: !t) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v0 = tile.load %v[%c0, %c0] {tile.delay = 1} : memref<?x64xbf16> -> !v
  %o0 = tile.mma %p, %v0, %none {tile.delay = 1} : !p, !v, !t -> !t
  // CHECK: scf.for %[[J:.*]] = %c32 {{.*}} iter_args(%[[ACC:[^ ]*]] = %{{.*}}, %[[AT:[^ ]*]] = %c0)
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !t {
    // CHECK: tile.load %{{.*}}[%[[AT]], %c0]
    // CHECK: %[[NOW:.*]] = tile.mma {{.*}}, %[[ACC]]
    // CHECK: tile.load %{{.*}}[%[[J]], %c0]
    // CHECK: tile.mma {{.*}}, %[[NOW]]
    %vj = tile.load %v[%j, %c0] : memref<?x64xbf16> -> !v
    %other = tile.mma %p, %vj, %acc : !p, !v, !t -> !t
    %sum = arith.addf %other, %acc : !t
    %late = tile.load %v[%j, %c0] {tile.delay = 1} : memref<?x64xbf16> -> !v
    %oj = tile.mma %p, %late, %sum {tile.delay = 1} : !p, !v, !t -> !t
    scf.yield %oj : !t
  }
  tile.store %r to %o[%c0, %c0] : !t, !m
  return
}
