// RUN: attn-opt %s --attn-verify-room=room=grid --split-input-file --verify-diagnostics

// One batch, one head and some rows of attention for each block; the softmax is not online.

func.func @two_heads(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected one batch and one head, got tensor<1x2x3x16xf16>}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return
}

// -----

func.func @two_batches(%q: tensor<2x1x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected one batch and one head, got tensor<2x1x3x16xf16>}}
  %o = attn.attention %q, %q, %q : tensor<2x1x3x16xf16>, tensor<2x1x3x16xf16>, tensor<2x1x3x16xf16> -> tensor<2x1x3x16xf16>
  return
}

// -----

func.func @any_batch(%q: tensor<?x1x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected one batch and one head, got tensor<?x1x3x16xf16>}}
  %o = attn.attention %q, %q, %q : tensor<?x1x3x16xf16>, tensor<?x1x3x16xf16>, tensor<?x1x3x16xf16> -> tensor<?x1x3x16xf16>
  return
}

// -----

func.func @no_grid(%q: tensor<1x1x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected it inside an scf.forall over (B, H, M tiles) mapped to blocks, got none}}
  %o = attn.attention %q, %q, %q : tensor<1x1x3x16xf16>, tensor<1x1x3x16xf16>, tensor<1x1x3x16xf16> -> tensor<1x1x3x16xf16>
  return
}

// -----

func.func @unmapped(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected it inside an scf.forall over (B, H, M tiles) mapped to blocks, got one that is not mapped}}
    %ot = attn.attention %qt, %q, %q : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  }
  return %r : tensor<1x1x128x16xf16>
}

// -----

func.func @two_dimensions(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %t) = (0, 0) to (1, 128) step (1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[0, %i, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected it inside an scf.forall over (B, H, M tiles) mapped to blocks, got one over 2 dimensions}}
    %ot = attn.attention %qt, %q, %q : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[0, %i, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  } {mapping = [#gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<1x1x128x16xf16>
}

// -----

func.func @variants(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected score and mask regions, got variants}}
    %ot = attn.attention %qt, %q, %q variants [#attn.causal<top_left>] : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<1x1x128x16xf16>
}

// -----

func.func @running_state(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+1 {{'attn.normalize' op in room 2 'grid': expected attn.attention, got a part of the online softmax}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

func.func @step(%q: tensor<8x16xf16>, %scale: f32, %acc: tensor<8x16xf32>, %row: tensor<8xf32>) {
  // expected-error@+1 {{'attn.online_attention' op in room 2 'grid': expected attn.attention, got a part of the online softmax}}
  %s:3 = attn.online_attention %q, %q, %q scale(%scale) outs(%acc, %row, %row)
    : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @memory(%x: memref<4xf32>, %i: index) {
  // expected-error@+1 {{'memref.load' op in room 2 'grid': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of memref}}
  %y = memref.load %x[%i] : memref<4xf32>
  return
}

// -----

func.func @branch() {
  // expected-error@+1 {{'cf.br' op in room 2 'grid': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of cf}}
  cf.br ^end
^end:
  return
}

// -----

func.func @tile(%x: memref<128x64xf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op in room 2 'grid': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of tile}}
  %y = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<128x64xf16>
  return
}

// -----

func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>) {
  // expected-error@+1 {{'attn.merge' op in room 2 'grid': expected tensors, got buffers}}
  attn.merge %p, %l outs(%o) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>
  return
}

// -----

func.func @bufferized(%x: tensor<8xf32>) {
  // expected-error@+1 {{'bufferization.to_buffer' op in room 2 'grid': expected tensors, got an op that makes buffers}}
  %y = bufferization.to_buffer %x : tensor<8xf32> to memref<8xf32>
  return
}

// -----

func.func @no_keys(%q: tensor<1x1x64x16xf16>, %k: tensor<1x1x0x16xf16>) -> tensor<1x1x64x16xf16> {
  // expected-error@+1 {{'attn.attention' op in room 2 'grid': expected static extents above 0, got tensor<1x1x0x16xf16>}}
  %o = attn.attention %q, %k, %k : tensor<1x1x64x16xf16>, tensor<1x1x0x16xf16>, tensor<1x1x0x16xf16> -> tensor<1x1x64x16xf16>
  return %o : tensor<1x1x64x16xf16>
}
