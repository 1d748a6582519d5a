// RUN: attn-opt %s --tile-fold-factors | FileCheck %s

!t = tensor<64x32xf32>
!m = memref<?x32xf32>

// The scale, a cap, and log2(e) are one number before the function and one behind it, where somebody divides too.
// CHECK-LABEL: func.func @constants
func.func @constants(%x: !m, %y: !m) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %twos = tile.broadcast %two : f32 -> !t
  %threes = tile.broadcast %three : f32 -> !t
  // CHECK-DAG: %[[SIX:.*]] = arith.constant 6.0{{.*}} : f32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1.5{{.*}} : f32
  // CHECK: %[[X:.*]] = tile.load
  %s = tile.load %x[%c0, %c0] : !m -> !t
  %a = arith.mulf %s, %twos : !t
  %b = arith.mulf %threes, %a : !t
  // CHECK: %[[SIXES:.*]] = tile.broadcast %[[SIX]]
  // CHECK-NEXT: %[[A:.*]] = arith.mulf %[[X]], %[[SIXES]]
  // CHECK-NEXT: %[[T:.*]] = math.tanh %[[A]]
  // CHECK-NEXT: %[[ONES:.*]] = tile.broadcast %[[ONE]]
  // CHECK-NEXT: %[[B:.*]] = arith.mulf %[[T]], %[[ONES]]
  // CHECK-NEXT: tile.store %[[B]]
  %t = math.tanh %b : !t
  %c = arith.mulf %t, %threes : !t
  %d = arith.divf %c, %twos : !t
  tile.store %d to %y[%c0, %c0] : !t, !m
  return
}

// A factor of a sum goes to its terms where each has one; what is left is a multiply-add. The slope is one of the launch's numbers.
// CHECK-LABEL: func.func @slopes
// CHECK-SAME: %[[SLOPE:[^ ]*]]: f32
func.func @slopes(%slope: f32, %x: !m, %y: !m) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %half = arith.constant 0.5 : f32
  %twos = tile.broadcast %two : f32 -> !t
  %halves = tile.broadcast %half : f32 -> !t
  %slopes = tile.broadcast %slope : f32 -> !t
  // CHECK-DAG: %[[HALF:.*]] = arith.constant 5.0{{.*}}e-01 : f32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0{{.*}} : f32
  // CHECK: %[[S:.*]] = tile.load
  // CHECK: %[[D:.*]] = tile.load
  %s = tile.load %x[%c0, %c0] : !m -> !t
  %d = tile.load %y[%c0, %c0] : !m -> !t
  %a = arith.mulf %s, %twos : !t
  %b = arith.mulf %slopes, %d : !t
  %c = arith.subf %a, %b : !t
  %e = arith.mulf %c, %halves : !t
  // CHECK: %[[LEFT:.*]] = arith.mulf %[[S]],
  // CHECK: %[[LESS:.*]] = arith.mulf %[[SLOPE]], %[[HALF]] : f32
  // CHECK: %[[NEGATIVE:.*]] = arith.negf %[[LESS]] : f32
  // CHECK: %[[ALL:.*]] = tile.broadcast %[[NEGATIVE]]
  // CHECK: %[[R:.*]] = math.fma %[[D]], %[[ALL]], %[[LEFT]]
  // CHECK: tile.store %[[R]]
  tile.store %e to %y[%c0, %c0] : !t, !m
  return
}

// The slope's number may be anything: 4 could make it infinite where the product is not. Nor do constants fold to what is no
// number, or none at all. What two read stays.
// CHECK-LABEL: func.func @stays
func.func @stays(%slope: f32, %x: !m, %y: !m) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %four = arith.constant 4.0 : f32
  %large = arith.constant 3.0e+38 : f32
  %tiny = arith.constant 1.0e-30 : f32
  %fours = tile.broadcast %four : f32 -> !t
  %larges = tile.broadcast %large : f32 -> !t
  %tinies = tile.broadcast %tiny : f32 -> !t
  %slopes = tile.broadcast %slope : f32 -> !t
  %s = tile.load %x[%c0, %c0] : !m -> !t
  // CHECK-COUNT-7: arith.mulf
  // CHECK-NOT: math.fma
  // CHECK: return
  %a = arith.mulf %s, %slopes : !t
  %b = arith.mulf %a, %fours : !t
  tile.store %b to %y[%c0, %c0] : !t, !m
  %c = arith.mulf %s, %larges : !t
  %d = arith.mulf %c, %fours : !t
  tile.store %d to %y[%c0, %c0] : !t, !m
  %e = arith.mulf %s, %tinies : !t
  %f = arith.mulf %e, %tinies : !t
  tile.store %f to %y[%c0, %c0] : !t, !m
  %g = arith.mulf %s, %tinies : !t
  %h = arith.addf %g, %g : !t
  tile.store %h to %y[%c0, %c0] : !t, !m
  return
}
