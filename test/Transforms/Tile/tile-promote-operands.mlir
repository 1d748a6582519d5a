// RUN: attn-opt %s --tile-promote-operands | FileCheck %s

// What a loop does not change is copied once, in front of it; what it changes is copied in it.
// CHECK-LABEL: func.func @loop
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x64xbf16>, %[[K:[^:]*]]: memref<?x64xbf16>
func.func @loop(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  // CHECK-DAG: %[[QS:.*]] = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128>
  // CHECK-DAG: %[[KS:.*]] = tile.alloc_shared : !tile.shared<96x64xbf16, swizzle = 128>
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  // CHECK: tile.copy %[[Q]]{{.*}} to
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c96 {
    // CHECK: tile.copy %[[K]]{{.*}} to
    // CHECK: tile.mma {{.*}} : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128>
    %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
    %b = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
    %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
  }
  return
}

// A load before the loop shares the tile that the loop refills.
// CHECK-LABEL: func.func @before_and_in_loop
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x64xbf16>, %[[K:[^:]*]]: memref<?x64xbf16>
func.func @before_and_in_loop(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  // CHECK: %[[KS:.*]] = tile.alloc_shared : !tile.shared<96x64xbf16, swizzle = 128>
  // CHECK-NOT: tile.alloc_shared : !tile.shared<96x64xbf16
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
  // CHECK: tile.copy %[[K]]{{.*}} to %[[KS]]
  %b = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
  %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
  // CHECK: scf.for
  scf.for %i = %c96 to %n step %c96 {
    // CHECK-NOT: tile.copy %[[Q]]
    // CHECK: tile.copy %[[K]]{{.*}} to %[[KS]]
    %d = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<96x64xbf16>
    %t = tile.mma %a, %d {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
  }
  return
}

// What a kernel begins with goes to its place when there is one.
// CHECK-LABEL: func.func @argument
// CHECK-SAME: (%[[RHS:[a-z0-9]+]]: tensor<64x64xbf16>,
// CHECK-NEXT: %[[PLACE:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
// CHECK-NEXT: tile.store %[[RHS]] to %[[PLACE]]
// CHECK: tile.mma %[[RHS]], %[[PLACE]]
func.func @argument(%rhs: tensor<64x64xbf16>, %o: memref<64x64xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %s = tile.mma %rhs, %rhs : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %s to %o[%zero, %zero] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// Memory that a loop makes is copied where it is, though the position is always the same.
// CHECK-LABEL: func.func @memory_of_a_loop
// CHECK: scf.for
// CHECK:   %[[MEMORY:.*]] = memref.alloc
// CHECK:   tile.copy %[[MEMORY]][
func.func @memory_of_a_loop(%n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  scf.for %i = %zero to %n step %n {
    %m = memref.alloc(%i) : memref<?x64xbf16>
    %t = tile.load %m[%zero, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
    %s = tile.mma %t, %t {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  }
  return
}

// In a loop around loops, what the inner ones do not change is copied once each time round: before the first reader of the
// box, for all of them. What they change shares a tile with what is loaded beside them.
// CHECK-LABEL: func.func @loop_around_loop
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x64xbf16>, %[[K:[^:]*]]: memref<?x64xbf16>
func.func @loop_around_loop(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  // CHECK-DAG: %[[QS:.*]] = tile.alloc_shared : !tile.shared<128x64xbf16, swizzle = 128>
  // CHECK-DAG: %[[KS:.*]] = tile.alloc_shared : !tile.shared<96x64xbf16, swizzle = 128>
  // CHECK-NOT: tile.alloc_shared
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  // CHECK: scf.for %[[I:.*]] =
  scf.for %i = %c0 to %n step %c128 {
    // CHECK: tile.copy %[[Q]][%[[I]], %{{.*}}] to %[[QS]]
    %a = tile.load %q[%i, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
    // CHECK: tile.copy %[[K]]{{.*}} to %[[KS]]
    %b = tile.load %k[%c0, %i] : memref<?x64xbf16> -> tensor<96x64xbf16>
    // CHECK: tile.mma %[[QS]], %[[KS]]
    %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
    // CHECK: scf.for %[[J:.*]] =
    scf.for %j = %c96 to %n step %c96 {
      // CHECK-NOT: tile.copy %[[Q]]
      // CHECK: tile.copy %[[K]][%[[J]], %[[I]]] to %[[KS]]
      // CHECK: tile.mma %[[QS]], %[[KS]]
      %c = tile.load %q[%i, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
      %d = tile.load %k[%j, %i] : memref<?x64xbf16> -> tensor<96x64xbf16>
      %t = tile.mma %c, %d {transpose_rhs} : tensor<128x64xbf16>, tensor<96x64xbf16> -> tensor<128x96xf32>
    }
  }
  return
}

// What threads compute in loops that follow each other has one place; beside each other in one loop tiles have one each.
// CHECK-LABEL: func.func @computed_in_loops
func.func @computed_in_loops(%q: memref<?x64xbf16>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  // CHECK-DAG: %[[QS:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // CHECK-DAG: %[[FIRST:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // CHECK-DAG: %[[SECOND:.*]] = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // CHECK-NOT: tile.alloc_shared
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    %s = tile.mma %a, %a {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    // CHECK: tile.store %{{.*}} to %[[X:[a-z0-9_]+]] :
    %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    // CHECK: tile.store %{{.*}} to %[[Y:[a-z0-9_]+]] :
    %g = arith.negf %h : tensor<64x64xbf16>
    %t = tile.mma %h, %a {transpose_lhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %u = tile.mma %g, %a {transpose_lhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  }
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    %s = tile.mma %a, %a {transpose_rhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    // CHECK: tile.store %{{.*}} to %[[X]] :
    %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
    %t = tile.mma %h, %a {transpose_lhs} : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  }
  return
}

// Numbers of columns have a row each, as long as copies ask for, and are copied where they are read. Loops that follow each other
// have the same rows.
// CHECK-LABEL: func.func @columns
// CHECK-SAME:    %[[A:[^:]*]]: memref<?x?xf32>, %[[B:[^:]*]]: memref<?x?xf32>
func.func @columns(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %q: memref<?x64xbf16>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  // CHECK-DAG: %[[FIRST:.*]] = tile.alloc_shared : !tile.shared<64xf32>
  // CHECK-DAG: %[[SECOND:.*]] = tile.alloc_shared : !tile.shared<64xf32>
  // CHECK-NOT: !tile.shared<64xf32>
  %c0 = arith.constant 0 : index
  %c40 = arith.constant 40 : index
  %k = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  // CHECK: scf.for %[[I:.*]] =
  scf.for %i = %c0 to %n step %c40 {
    // CHECK: tile.copy %[[Q:.*]][%[[I]]
    %x = tile.load %q[%i, %c0] : memref<?x64xbf16> -> tensor<40x64xbf16>
    // CHECK: tile.copy %[[A]][%{{.*}}, %[[I]]] to %[[ONE:[a-z0-9_]+]] : memref<?x?xf32>, !tile.shared<64xf32>
    // CHECK: tile.load_columns %[[ONE]] : !tile.shared<64xf32> -> tensor<64x40xf32>
    %s = tile.load_columns %a[%c0, %i] : memref<?x?xf32> -> tensor<64x40xf32>
    // CHECK: tile.copy %[[B]][%{{.*}}, %[[I]]] to %[[OTHER:[a-z0-9_]+]] :
    // CHECK: tile.load_columns %[[OTHER]] :
    %t = tile.load_columns %b[%c0, %i] : memref<?x?xf32> -> tensor<64x40xf32>
    %u = arith.addf %s, %t : tensor<64x40xf32>
    %m = tile.mma %k, %x, %u {transpose_rhs} : tensor<64x64xbf16>, tensor<40x64xbf16>, tensor<64x40xf32> -> tensor<64x40xf32>
  }
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c40 {
    %x = tile.load %q[%i, %c0] : memref<?x64xbf16> -> tensor<40x64xbf16>
    // CHECK: tile.copy %[[A]]{{.*}} to %[[ONE]] :
    %s = tile.load_columns %a[%c0, %i] : memref<?x?xf32> -> tensor<64x40xf32>
    %m = tile.mma %k, %x, %s {transpose_rhs} : tensor<64x64xbf16>, tensor<40x64xbf16>, tensor<64x40xf32> -> tensor<64x40xf32>
  }
  return
}

// Values of 8 bits are transposed after each copy, one place for all loops.
// CHECK-LABEL: func.func @values_of_8_bits
// CHECK-SAME:    %[[K:[^:]*]]: memref<?x64xf8E4M3FN>, %[[V:[^:]*]]: memref<?x64xf8E5M2>
func.func @values_of_8_bits(%k: memref<?x64xf8E4M3FN>, %v: memref<?x64xf8E5M2>, %p: tensor<64x128xf8E4M3FN>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  // CHECK-DAG: %[[VT:.*]] = tile.alloc_shared : !tile.shared<64x128xf8E5M2, swizzle = 128, quads>
  // CHECK-DAG: %[[VS:.*]] = tile.alloc_shared : !tile.shared<128x64xf8E5M2, swizzle = 64>
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  // CHECK: tile.copy %[[V]]{{.*}} to %[[VS]]
  // CHECK-NEXT: tile.transpose %[[VS]] to %[[VT]]
  // CHECK: tile.mma %{{.*}}, %[[VT]] {transpose_rhs}
  %a = tile.load %v[%c0, %c0] : memref<?x64xf8E5M2> -> tensor<128x64xf8E5M2>
  %o = tile.mma %p, %a : tensor<64x128xf8E4M3FN>, tensor<128x64xf8E5M2> -> tensor<64x64xf32>
  // CHECK: scf.for
  scf.for %i = %c128 to %n step %c128 {
    // CHECK: tile.copy %[[V]]{{.*}} to %[[VS]]
    // CHECK-NEXT: tile.transpose %[[VS]] to %[[VT]]
    // CHECK: tile.mma %{{.*}}, %[[VT]] {transpose_rhs}
    %b = tile.load %v[%i, %c0] : memref<?x64xf8E5M2> -> tensor<128x64xf8E5M2>
    %r = tile.mma %p, %b : tensor<64x128xf8E4M3FN>, tensor<128x64xf8E5M2> -> tensor<64x64xf32>
  }
  return
}
