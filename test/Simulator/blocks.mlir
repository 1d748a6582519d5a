// RUN: attn-opt %s --tile-simulate="shapes=128x64,64 seeds=8" --split-input-file --verify-diagnostics -o %t

// What blocks and warpgroups do to global memory, where nothing orders them. Each mistake beside its clean twin.

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @own_rows(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : !t
  %block = gpu.block_id x
  %at = arith.muli %block, %c64 : index
  tile.store %one to %o[%at, %c0] : !t, !m
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @overlapping_rows(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant dense<1.0> : !t
  %block = gpu.block_id x
  %at = arith.muli %block, %c32 : index
  // expected-error@+2 {{race: element [32, 0] of argument 0 is written by block (1, 0, 0), and nothing orders that against block (0, 0, 0)}}
  // expected-note@+1 {{it is written here}}
  tile.store %one to %o[%at, %c0] : !t, !m
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @sum(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant dense<1.0> : !t
  %block = gpu.block_id x
  %at = arith.muli %block, %c32 : index
  tile.store %one to %o[%at, %c0] {add} : !t, !m
  return
}

// -----

#acc = #tile.acc<units = 1>
#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #acc>
!i = tensor<64x64xindex, #acc>

// Rows of a tile share places, and so do blocks.
func.func @scattered_sum(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1.0> : !t
  %block = gpu.block_id x
  %column = tile.coord 1 from %block : !i
  %ends = arith.constant dense<64> : !i
  %keep = arith.cmpi slt, %column, %ends : !i
  tile.scatter_add %one to %o[%c3, %column] where %keep : !t, !m, index, !i
  return
}

// -----

#acc = #tile.acc<units = 1>
#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #acc>
!i = tensor<64x64xindex, #acc>

// What is kept is inside.
func.func @scattered_outside(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1.0> : !t
  %yes = arith.constant dense<true> : tensor<64x64xi1, #acc>
  %block = gpu.block_id x
  %column = tile.coord 1 from %block : !i
  // expected-error@+1 {{out of bounds: adds to element 3x64 of memory of shape 128x64}}
  tile.scatter_add %one to %o[%c3, %column] where %yes : !t, !m, index, !i
  return
}

// -----

#acc = #tile.acc<units = 1>
#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #acc>

// A block does not find the sum complete.
func.func @read_scattered_sum(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : !t
  %yes = arith.constant dense<true> : tensor<64x64xi1, #acc>
  // expected-error@+1 {{race: element [0, 0] of argument 0 is added to by block (1, 0, 0), and nothing orders that against block (0, 0, 0)}}
  tile.scatter_add %one to %o[%c0, %c0] where %yes : !t, !m, index, index
  // expected-note@+1 {{it is read here}}
  %sum = tile.load %o[%c0, %c0] : !m -> !t
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @sum_of_some(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : !t
  %block = gpu.block_id x
  %is_first = arith.cmpi eq, %block, %c0 : index
  scf.if %is_first {
    // expected-note@+1 {{it is written here}}
    tile.store %one to %o[%c0, %c0] : !t, !m
  } else {
    // expected-error@+1 {{race: element [0, 0] of argument 0 is added to by block (1, 0, 0), and nothing orders that against block (0, 0, 0)}}
    tile.store %one to %o[%c0, %c0] {add} : !t, !m
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

// A block does not find the sum complete.
func.func @read_sum(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : !t
  %block = gpu.block_id x
  // expected-error@+1 {{race: element [0, 0] of argument 0 is added to by block (1, 0, 0), and nothing orders that against block (0, 0, 0)}}
  tile.store %one to %o[%c0, %c0] {add} : !t, !m
  // expected-note@+1 {{it is read here}}
  %sum = tile.load %o[%c0, %c0] : !m -> !t
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 2, grid = []>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

// Two warpgroups meet between the write and the read.
func.func @meet(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  tile.sync
  tile.specialize
  role writer warpgroups 1 registers 128 {
    %one = arith.constant dense<1.0> : !t
    tile.store %one to %o[%c0, %c0] : !t, !m
    %id = arith.constant 1 : index
    tile.named_barrier sync %id threads 256
  }
  role reader warpgroups 1 registers 128 {
    %id = arith.constant 1 : index
    tile.named_barrier sync %id threads 256
    %read = tile.load %o[%c0, %c0] : !m -> !t
    %c64 = arith.constant 64 : index
    tile.store %read to %o[%c64, %c0] : !t, !m
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 2, grid = []>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>

func.func @do_not_meet(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  tile.sync
  tile.specialize
  role writer warpgroups 1 registers 128 {
    %one = arith.constant dense<1.0> : !t
    // expected-note@+1 {{it is written here}}
    tile.store %one to %o[%c0, %c0] : !t, !m
  }
  role reader warpgroups 1 registers 128 {
    // expected-error@+1 {{race: element [0, 0] of argument 0 is read by block (0, 0, 0), and nothing orders that against another warpgroup}}
    %read = tile.load %o[%c0, %c0] : !m -> !t
    %c64 = arith.constant 64 : index
    tile.store %read to %o[%c64, %c0] : !t, !m
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!r = tensor<64xf32, #tile.row<#tile.acc<units = 1>>>

// A block that waits for the flag of another: no op releases or acquires global memory, so the flag itself is a race.
func.func @flag(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : !r
  %block = gpu.block_id x
  %isFirst = arith.cmpi eq, %block, %c0 : index
  scf.if %isFirst {
    // expected-note@+1 {{it is written here}}
    tile.store %one to %s[%c0] : !r, memref<?xf32>
  } else {
    scf.while : () -> () {
      // expected-error@+1 {{race: element [0] of argument 1 is read by block (1, 0, 0), and nothing orders that against block (0, 0, 0)}}
      %flag = memref.load %s[%c0] : memref<?xf32>
      %isUnset = arith.cmpf oeq, %flag, %zero : f32
      scf.condition(%isUnset)
    } do {
      scf.yield
    }
  }
  return
}
