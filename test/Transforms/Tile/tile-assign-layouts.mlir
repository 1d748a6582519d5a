// RUN: attn-opt %s --tile-assign-layouts | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%q: !tile.shared<128x64xbf16, swizzle = 128>, %k: !tile.shared<96x64xbf16, swizzle = 128>, %v: !tile.shared<96x64xbf16, swizzle = 128>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  // CHECK: tile.mma {{.*}} -> tensor<128x96xf32, #tile.acc<units = 2>>
  %s = tile.mma %q, %k {transpose_rhs} : !tile.shared<128x64xbf16, swizzle = 128>, !tile.shared<96x64xbf16, swizzle = 128> -> tensor<128x96xf32>
  // CHECK: tile.reduce max {{.*}} -> tensor<128xf32, #tile.row<#tile.acc<units = 2>>>
  %m = tile.reduce max %s : tensor<128x96xf32> -> tensor<128xf32>
  %p = arith.truncf %s : tensor<128x96xf32> to tensor<128x96xbf16>
  // A left operand in registers: the same map for 16-bit types.
  // CHECK: tile.convert_layout {{.*}} -> tensor<128x96xbf16, #tile.operand_a<units = 2>>
  %o = tile.mma %p, %v : tensor<128x96xbf16>, !tile.shared<96x64xbf16, swizzle = 128> -> tensor<128x64xf32>
  return
}

// A constant says its type twice.
// CHECK-LABEL: func.func @constants
func.func @constants() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  // CHECK: arith.constant dense<-5.000000e-01> : tensor<64x64xf32, #tile.acc<units = 1>>
  %a = arith.constant dense<-5.0e-01> : tensor<64x64xf32>
  // CHECK: arith.constant dense<true> : tensor<64xi1, #tile.row<#tile.acc<units = 1>>>
  %b = arith.constant dense<true> : tensor<64xi1>
  return
}

// A function is of the types that its arguments have then.
// CHECK-LABEL: func.func @argument(%{{.*}}: tensor<64x64xbf16, #tile.acc<units = 1>>)
func.func @argument(%q: tensor<64x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// Four columns are one for each lane of a quad.
// CHECK-LABEL: func.func @parts
func.func @parts(%zero: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %x = arith.constant dense<1.0> : tensor<64x64xf32>
  // CHECK: tile.broadcast {{.*}} -> tensor<64x4xf32, #tile.quad<#tile.acc<units = 1>>>
  %init = tile.broadcast %zero : f32 -> tensor<64x4xf32>
  // CHECK: %[[SUM:.*]] = tile.reduce add {{.*}} -> tensor<64x4xf32, #tile.quad<#tile.acc<units = 1>>>
  %sum = tile.reduce add %x, %init : tensor<64x64xf32>, tensor<64x4xf32> -> tensor<64x4xf32>
  // CHECK: tile.reduce add %[[SUM]] : {{.*}} -> tensor<64xf32, #tile.row<#tile.acc<units = 1>>>
  %rows = tile.reduce add %sum : tensor<64x4xf32> -> tensor<64xf32>
  return
}

// Pieces of 16 bytes go to rows of contiguous memory, if there are whole groups of 32 columns of 16 bits.
// CHECK-LABEL: func.func @stored
func.func @stored(%o: memref<?x64xbf16>, %strided: memref<?x64xbf16, strided<[?, ?]>>, %wide: memref<?x64xf32>,
    %narrow: memref<?x40xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %zero = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xbf16>
  // CHECK: %[[CHUNKED:.*]] = tile.convert_layout {{.*}} -> tensor<64x64xbf16, #tile.chunked<#tile.acc<units = 1>>>
  // CHECK: tile.store %[[CHUNKED]]
  tile.store %x to %o[%zero, %zero] : tensor<64x64xbf16>, memref<?x64xbf16>
  // CHECK-NOT: tile.convert_layout
  tile.store %x to %strided[%zero, %zero] : tensor<64x64xbf16>, memref<?x64xbf16, strided<[?, ?]>>
  %y = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.store %y to %wide[%zero, %zero] : tensor<64x64xf32>, memref<?x64xf32>
  %z = arith.constant dense<1.0> : tensor<64x40xbf16>
  tile.store %z to %narrow[%zero, %zero] : tensor<64x40xbf16>, memref<?x40xbf16>
  return
}

// What is only summed along rows comes 16 bytes at a time: it does not matter which lane has which element.
// CHECK-LABEL: func.func @summed
func.func @summed(%x: memref<?x64xbf16>, %y: memref<?x64xbf16>, %narrow: memref<?x40xbf16>, %o: memref<?x64xbf16>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %zero = arith.constant 0 : index
  // CHECK-COUNT-2: tile.load {{.*}} -> tensor<64x64xbf16, #tile.chunked<#tile.acc<units = 1>>>
  %a = tile.load %x[%zero, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %b = tile.load %y[%zero, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
  // CHECK-COUNT-2: arith.extf {{.*}} to tensor<64x64xf32, #tile.chunked<#tile.acc<units = 1>>>
  %c = arith.extf %a : tensor<64x64xbf16> to tensor<64x64xf32>
  %d = arith.extf %b : tensor<64x64xbf16> to tensor<64x64xf32>
  %e = arith.mulf %c, %d : tensor<64x64xf32>
  // CHECK: tile.reduce add {{.*}} : tensor<64x64xf32, #tile.chunked<#tile.acc<units = 1>>> -> tensor<64xf32, #tile.row<#tile.acc<units = 1>>>
  %sum = tile.reduce add %e : tensor<64x64xf32> -> tensor<64xf32>
  // What else is read, or has no whole groups of columns, is like everything.
  // CHECK: tile.load {{.*}} -> tensor<64x64xbf16, #tile.acc<units = 1>>
  %f = tile.load %x[%zero, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
  tile.store %f to %o[%zero, %zero] : tensor<64x64xbf16>, memref<?x64xbf16>
  %g = arith.extf %f : tensor<64x64xbf16> to tensor<64x64xf32>
  %other = tile.reduce add %g : tensor<64x64xf32> -> tensor<64xf32>
  // CHECK: tile.load {{.*}} -> tensor<64x40xbf16, #tile.acc<units = 1>>
  %h = tile.load %narrow[%zero, %zero] : memref<?x40xbf16> -> tensor<64x40xbf16>
  %i = arith.extf %h : tensor<64x40xbf16> to tensor<64x40xf32>
  %last = tile.reduce add %i : tensor<64x40xf32> -> tensor<64xf32>
  // So are parts of rows, and what goes through elements of other sizes.
  // CHECK: tile.load {{.*}} -> tensor<64x64xbf16, #tile.acc<units = 1>>
  %j = tile.load %x[%zero, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %k = arith.extf %j : tensor<64x64xbf16> to tensor<64x64xf32>
  %parts = tile.reduce add %k : tensor<64x64xf32> -> tensor<64x4xf32>
  // CHECK: tile.load {{.*}} -> tensor<64x64xbf16, #tile.acc<units = 1>>
  %l = tile.load %x[%zero, %zero] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %m = arith.cmpf olt, %l, %l : tensor<64x64xbf16>
  %n = arith.extui %m : tensor<64x64xi1> to tensor<64x64xi32>
  %count = tile.reduce add %n : tensor<64x64xi32> -> tensor<64xi32>
  return
}

// One number fills rows that start at multiples of 16 bytes in such pieces. Rows whose strides nobody knows may start anywhere.
// CHECK-LABEL: func.func @filled
func.func @filled(%x: f32, %o: memref<?x64xf32>, %any: memref<?x64xf32, strided<[?, 1]>>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : f32 -> tensor<128x64xf32>
  // CHECK: %[[WIDE:.*]] = tile.broadcast %{{.*}} -> tensor<128x64xf32, #tile.blocked<vector = 4, lanes = 16, warps = 8>>
  // CHECK: tile.store %[[WIDE]] to %arg1
  tile.store %t to %o[%zero, %zero] : tensor<128x64xf32>, memref<?x64xf32>
  // CHECK: tile.store %{{.*}} to %arg2{{.*}} : tensor<128x64xf32, #tile.acc<units = 2>>
  tile.store %t to %any[%zero, %zero] : tensor<128x64xf32>, memref<?x64xf32, strided<[?, 1]>>
  return
}

// Where nothing is multiplied, rows that are no accumulator's have lanes along them: here 16 of four numbers, two rows a warp.
// CHECK-LABEL: func.func @few_rows
func.func @few_rows(%values: memref<?x64xf32>, %numbers: memref<?xf32>, %out: memref<?x64xbf16>, %zero: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  // CHECK: tile.load {{.*}} -> tensor<8x64xf32, #tile.blocked<vector = 4, lanes = 16, warps = 4>>
  // CHECK: tile.load {{.*}} -> tensor<8xf32, #tile.row<#tile.blocked<vector = 4, lanes = 16, warps = 4>>>
  // CHECK: tile.store {{.*}} : tensor<8x64xbf16, #tile.blocked<vector = 4, lanes = 16, warps = 4>>
  %x = tile.load %values[%zero, %zero] : memref<?x64xf32> -> tensor<8x64xf32>
  %r = tile.load %numbers[%zero] : memref<?xf32> -> tensor<8xf32>
  %f = tile.broadcast %r : tensor<8xf32> -> tensor<8x64xf32>
  %y = arith.mulf %x, %f : tensor<8x64xf32>
  %o = arith.truncf %y : tensor<8x64xf32> to tensor<8x64xbf16>
  tile.store %o to %out[%zero, %zero] : tensor<8x64xbf16>, memref<?x64xbf16>
  return
}
