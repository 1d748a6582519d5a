// RUN: attn-opt %s --convert-attn-to-tile --split-input-file --verify-diagnostics

// A state that is an argument lies in memory: nobody has read it.
func.func @state(%q: tensor<2x2x128x64xf16>, %scale: f32, %acc: tensor<64x64xf32>, %row: tensor<64xf32>, %e: tensor<2x2x128x64xf16>) -> tensor<2x2x128x64xf16> {
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x64xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xf16> to tensor<64x64xf16>
    // expected-error@below {{expected a tile or a number that the block has made, got an argument of type 'tensor<64x64xf32>'}}
    %s:3 = attn.online_attention %qt, %qt, %qt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf16> -> tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<2x2x128x64xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xf16>
}

// -----

func.func @buffer(%q: tensor<2x2x128x64xf16>, %mem: memref<4xf32>, %x: f32, %c: i1) -> tensor<2x2x128x64xf16> {
  %e = tensor.empty() : tensor<2x2x128x64xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x64xf16>) {
    // expected-error@below {{expected a tensor to fill, got 'memref<4xf32>'}}
    linalg.fill ins(%x : f32) outs(%mem : memref<4xf32>)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %zero into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<2x2x128x64xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xf16>
}

// -----

// The body of a loop that has no form here reads what stays behind.
func.func @affine_loop(%q: tensor<2x2x128x64xf16>, %mem: memref<4xf32>, %x: f32, %c: i1) -> tensor<2x2x128x64xf16> {
  %e = tensor.empty() : tensor<2x2x128x64xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x64xf16>) {
    // expected-error@below {{'affine.for' op has no form on tiles}}
    affine.for %k = 0 to 4 {
      %y = arith.addi %k, %i : index
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %zero into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<2x2x128x64xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xf16>
}

// -----

func.func @call(%q: tensor<2x2x128x64xf16>, %mem: memref<4xf32>, %x: f32, %c: i1) -> tensor<2x2x128x64xf16> {
  %e = tensor.empty() : tensor<2x2x128x64xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x64xf16>) {
    %y = scf.if %c -> f32 {
      // expected-error@below {{'func.call' op has no form on tiles}}
      %z = func.call @g(%x) : (f32) -> f32
      scf.yield %z : f32
    } else {
      scf.yield %x : f32
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %zero into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<2x2x128x64xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xf16>
}
func.func private @g(f32) -> f32
