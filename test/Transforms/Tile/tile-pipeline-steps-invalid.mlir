// RUN: attn-opt %s --split-input-file --verify-diagnostics --tile-pipeline-steps

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>
!m = memref<?x64xf32>

func.func @reader(%a: !m, %n: index, %x: !t) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %in = tile.load %a[%j, %c0] {tile.delay = 2} : !m -> !t
    // expected-error@+1 {{expected tile.delay of at least 2, as what it reads has, got 1}}
    %s = arith.addf %sum, %in {tile.delay = 1} : !t
    scf.yield %s : !t
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>
!m = memref<?x64xf32>

func.func @reader_of_the_turn_before(%a: !m, %n: index, %x: !t) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    // expected-error@+1 {{expected tile.delay of at least 1, as what it reads of the turn before has 2, got 0}}
    %e = math.exp2 %sum : !t
    %s = arith.addf %e, %e {tile.delay = 2} : !t
    scf.yield %s : !t
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>
!m = memref<?x64xf32>

func.func @reader_outside(%a: !m, %o: !m, %n: index, %x: !t, %c: i1) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    // expected-error@+1 {{expected to read what a delayed op carries only beside that op}}
    tile.store %sum to %o[%j, %c0] : !t, !m
    %step = scf.if %c -> !t {
      %s = arith.addf %sum, %sum {tile.delay = 1} : !t
      scf.yield %s : !t
    } else {
      scf.yield %sum : !t
    }
    scf.yield %step : !t
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>

func.func @other_branch(%n: index, %x: !t, %c: i1) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %step = scf.if %c -> !t {
      // expected-error@+1 {{expected what is carried to stay the same where a delayed op does not run}}
      %s = arith.addf %sum, %sum {tile.delay = 1} : !t
      scf.yield %s : !t
    } else {
      scf.yield %x : !t
    }
    scf.yield %step : !t
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>

func.func @result_outside(%n: index, %x: !t, %c: i1) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %step = scf.if %c -> !t {
      // expected-error@+1 {{expected a delayed result that its loop carries only}}
      %s = arith.addf %sum, %sum {tile.delay = 1} : !t
      scf.yield %s : !t
    } else {
      scf.yield %sum : !t
    }
    %e = math.exp2 %step : !t
    scf.yield %e : !t
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>

func.func @two_blocks(%n: index, %x: !t, %c: i1) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> !t {
    %e = math.exp2 %x {tile.delay = 1} : !t
    %step = scf.if %c -> !t {
      // expected-error@+1 {{expected all delayed ops of a loop in one block}}
      %s = arith.addf %sum, %sum {tile.delay = 1} : !t
      scf.yield %s : !t
    } else {
      scf.yield %sum : !t
    }
    scf.yield %step : !t
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>
!m = memref<?x64xf32>

func.func @memory(%a: !m, %n: index, %x: !t) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %n step %c64 {
    %in = tile.load %a[%j, %c0] : !m -> !t
    // expected-error@+1 {{expected a delayed op whose memory nobody writes in the loop, and that writes none that others access}}
    tile.store %in to %a[%c0, %c0] {tile.delay = 1} : !t, !m
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>
!m = memref<?x64xf32>

func.func @memory_handed_on(%a: memref<?x?x64xf32>, %o: !m, %n: index) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %n step %c64 {
    %part = memref.subview %a[%j, 0, 0] [1, 64, 64] [1, 1, 1] : memref<?x?x64xf32> to memref<64x64xf32, strided<[64, 1], offset: ?>>
    // expected-error@+1 {{expected numbers and tiles from a delayed op's turn, got memref<64x64xf32, strided<[64, 1], offset: ?>>}}
    %in = tile.load %part[%c0, %c0] {tile.delay = 1} : memref<64x64xf32, strided<[64, 1], offset: ?>> -> !t
    tile.store %in to %o[%j, %c0] {tile.delay = 1} : !t, !m
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>

func.func @other_region(%n: index, %x: !t) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %n step %c64 {
    scf.execute_region {
      // expected-error@+1 {{expected a delayed op in its loop's body or in an scf.if there}}
      %e = math.exp2 %x {tile.delay = 1} : !t
      scf.yield
    }
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!t = tensor<64x64xf32>

func.func @no_loop(%x: !t) attributes {tile.kernel = #kernel} {
  // expected-error@+1 {{expected a delayed op in an scf.for, or one that makes what the same op of an scf.for behind it carries}}
  %e = math.exp2 %x {tile.delay = 1} : !t
  return
}

// -----

// Whatever a turn hands on, the first one has nothing of: zeros, which memory and tensors of any size are not.

#kernel = #tile.kernel<warpgroups = 1, grid = []>

func.func @no_tile(%n: index, %x: tensor<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %n step %c64 {
    %y = math.absf %x : tensor<?xf32>
    // expected-error@+1 {{expected numbers and tiles from a delayed op's turn, got tensor<?xf32>}}
    %e = math.exp2 %y {tile.delay = 1} : tensor<?xf32>
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>

func.func @empty_tile(%n: index, %x: tensor<0x4xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%sum = %x) -> tensor<0x4xf32> {
    // expected-error@+1 {{expected numbers and tiles from a delayed op's turn, got tensor<0x4xf32>}}
    %e = math.exp2 %sum {tile.delay = 1} : tensor<0x4xf32>
    scf.yield %e : tensor<0x4xf32>
  }
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = []>
!v = memref<64x64xf32, strided<[64, 1], offset: ?>>

func.func @captured_memory(%a: memref<?x?x64xf32>, %n: index, %c: i1) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %n step %c64 {
    %part = memref.subview %a[%j, 0, 0] [1, 64, 64] [1, 1, 1] : memref<?x?x64xf32> to !v
    // expected-error@+1 {{expected numbers and tiles from a delayed op's turn, got memref<64x64xf32, strided<[64, 1], offset: ?>>}}
    %s = scf.if %c -> f32 {
      %x = memref.load %part[%c0, %c0] : !v
      scf.yield %x : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    } {tile.delay = 1}
  }
  return
}
