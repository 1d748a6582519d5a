// RUN: attn-opt %s --tile-make-rings --split-input-file --verify-diagnostics

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @no_role(%q: !global) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  // expected-error@below {{expected a tile.role, which tile-assign-roles decides, got none}}
  tile.copy %q[%c0, %c0] to %qs : !global, !tile
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @user(%q: !global) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  // expected-error@below {{expected tile.copy, tile.store, tile.transpose, tile.load_columns, tile.load_shared, tile.clear_unread or tile.mma as a user of a place}}
  tile.store_async %qs to %q[%c0, %c0] : !tile, !global
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

// What the turn before has left may be anything in the first.
func.func @read_before_fill(%q: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  scf.for %i = %c0 to %n step %c64 {
    // expected-error@below {{expected a fill of its place before it, in its block or around it, got none}}
    %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
    // expected-note@below {{the place is filled here}}
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
  }
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @filled_under_a_condition(%q: !global, %live: i1) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  scf.if %live {
    // expected-note@below {{the place is filled here}}
    tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  }
  // expected-error@below {{expected a fill of its place before it, in its block or around it, got none}}
  %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @filled_again(%q: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{it is filled here}}
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  scf.for %i = %c0 to %n step %c64 {
    // expected-error@below {{expected a place that is not filled again before this reads it}}
    %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
    // expected-note@below {{and again here}}
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
    %t = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
  }
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!half = tensor<64x64xbf16, #tile.acc<units = 1>>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @two_writers(%q: !global, %x: !half) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{the first to fill it is this}}
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
  // expected-error@below {{expected its place to be filled by tile.copy of role "load" only, got role "compute"}}
  tile.store %x to %qs {tile.role = "compute"} : !half, !tile
  %t = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @other_loops(%q: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %qs = tile.alloc_shared : !tile
  // expected-error@below {{expected scf.for, scf.if or scf.while around ops that fill or release a place}}
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
    %s = tile.mma %qs, %qs {tile.role = "compute"} : !tile, !tile -> !result
  }
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x65536xbf16, swizzle = 128>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

func.func @bytes(%q: memref<?x65536xbf16, strided<[?, 1]>>, %o: memref<?x64xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  // expected-error@below {{expected a place of fewer than 1048576 bytes, which a barrier can count, got 8388608}}
  %qs = tile.alloc_shared : !tile
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : memref<?x65536xbf16, strided<[?, 1]>>, !tile
  %s = tile.mma %qs, %qs {transpose_rhs, tile.role = "compute"} : !tile, !tile -> tensor<64x64xf32, #tile.acc<units = 1>>
  tile.store %s to %o[%c0, %c0] {tile.role = "compute"} : tensor<64x64xf32, #tile.acc<units = 1>>, memref<?x64xf32>
  return
}

// -----

#acc = #tile.acc<units = 1>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

// Marks have a bit for each of 256 columns.
func.func @marks(%p: tensor<64x512xbf16, #acc>, %v: !tile.shared<512x64xbf16, swizzle = 128>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#compute]} {
  // expected-error@below {{and weights of 16-bit floats in #tile.acc and at most 256 columns, got '!tile.shared<512x64xbf16, swizzle = 128>' and 'tensor<64x512xbf16, #tile.acc<units = 1>>'}}
  tile.clear_unread %v by %p {tile.role = "compute"} : !tile.shared<512x64xbf16, swizzle = 128>, tensor<64x512xbf16, #acc>
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

// The product that ends the tile's stay comes before threads read the row.
func.func @row_is_read_late(%q: !global, %numbers: memref<?x?xf32>, %o: memref<?x64xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  // expected-error@below {{expected a row that is filled beside a tile, and read before the tile's last product, got one that is alone}}
  %row = tile.alloc_shared : !tile.shared<64xf32>
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  tile.copy %numbers[%c0, %c0] to %row {tile.role = "load"} : memref<?x?xf32>, !tile.shared<64xf32>
  %s = tile.mma %qs, %qs {transpose_rhs, tile.role = "compute"} : !tile, !tile -> !result
  %t = tile.load_columns %row {tile.role = "compute"} : !tile.shared<64xf32> -> !result
  tile.store %t to %o[%c0, %c0] {tile.role = "compute"} : !result, memref<?x64xf32>
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

// The next turn of the loop would read what nobody behind the second copy does.
func.func @next_turn(%q: !global, %n: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{it is filled here}}
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  scf.for %i = %c64 to %n step %c64 {
    // expected-error@below {{expected a place that is not filled again before this reads it}}
    %s = tile.mma %qs, %qs {tile.role = "compute", transpose_rhs} : !tile, !tile -> !result
    // expected-note@below {{and again here}}
    tile.copy %q[%i, %c0] to %qs {tile.role = "load"} : !global, !tile
  }
  return
}

// -----

!global = memref<?x64xbf16, strided<[?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>

// Nor is it known which copy a reader behind a branch sees.
func.func @branch(%q: !global, %n: index, %b: i1) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  %qs = tile.alloc_shared : !tile
  // expected-note@below {{it is filled here}}
  tile.copy %q[%c0, %c0] to %qs {tile.role = "load"} : !global, !tile
  scf.if %b {
    // expected-note@below {{and again here}}
    tile.copy %q[%n, %c0] to %qs {tile.role = "load"} : !global, !tile
  }
  // expected-error@below {{expected a place that is not filled again before this reads it}}
  %s = tile.mma %qs, %qs {tile.role = "compute", transpose_rhs} : !tile, !tile -> !result
  return
}

// -----

!pool = memref<?x1x?x255xbf16, strided<[?, ?, ?, 1]>>
!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>

// Threads gather pieces of 16 bytes.
func.func @gathered(%k: !pool {plan.paged = #plan.paged<table = 1, page = 1>}, %table: memref<?x?xi32>, %n: index)
    attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>,
    tile.roles = [#tile.role<name = "load", warpgroups = 1, registers = 40>,
                  #tile.role<name = "compute", warpgroups = 1, registers = 240>]} {
  %c0 = arith.constant 0 : index
  %ks = tile.alloc_shared : !tile
  // expected-error@below {{expected pages whose rows are a constant multiple of 16 bytes and fit a warp, got}}
  tile.copy %k[%c0, %c0, %n, %c0] to %ks {tile.role = "load"} : !pool, !tile
  %s = tile.mma %ks, %ks {tile.role = "compute", transpose_rhs} : !tile, !tile -> !result
  return
}
