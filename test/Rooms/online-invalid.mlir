// RUN: attn-opt %s --attn-verify-room=room=online --split-input-file --verify-diagnostics

// No attention over all keys at once; tensors, whose only buffers are those that take results.

func.func @attention(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op in room 3 'online': expected attn.online_attention, got attention over all keys at once}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return
}

// -----

func.func @attention_in_a_grid(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    // expected-error@+1 {{'attn.attention' op in room 3 'online': expected attn.online_attention, got attention over all keys at once}}
    %ot = attn.attention %qt, %q, %q : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<1x1x128x16xf16>
}

// -----

func.func @gradients(%q: tensor<1x2x3x16xf16>, %l: tensor<1x2x3xf32>) {
  // expected-error@+1 {{'attn.row_delta' op in room 3 'online': expected steps over tiles, got gradients over all rows and keys at once}}
  %n, %d = attn.row_delta %q, %q, %l : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3xf32> -> tensor<1x2x3xf32>, tensor<1x2x3xf32>
  return
}

// -----

func.func @gradients_of_queries(%q: tensor<1x2x3x16xf16>, %l: tensor<1x2x3xf32>) {
  // expected-error@+1 {{'attn.attention_grad_query' op in room 3 'online': expected steps over tiles, got gradients over all rows and keys at once}}
  %d = attn.attention_grad_query %q, %q, %q, %q, %l, %l : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3xf32>, tensor<1x2x3xf32> -> d_query(tensor<1x2x3x16xf16>)
  return
}

// -----

func.func @branch() {
  // expected-error@+1 {{'cf.br' op in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of cf}}
  cf.br ^end
^end:
  return
}

// -----

func.func @memory(%x: memref<4xf32>, %i: index) {
  // expected-error@+1 {{'memref.load' op in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of memref}}
  %y = memref.load %x[%i] : memref<4xf32>
  return
}

// -----

func.func @tile(%x: memref<128x64xf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of tile}}
  %y = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<128x64xf16>
  return
}

// -----

func.func @thread_number() {
  // expected-error@+1 {{'gpu.thread_id' op in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of gpu}}
  %i = gpu.thread_id x
  return
}

// -----

func.func @thread(%x: i32) {
  // expected-error@+1 {{'llvm.add' op in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of llvm}}
  %y = llvm.add %x, %x : i32
  return
}

// -----

func.func @vector(%x: vector<16xf32>) {
  // expected-error@+1 {{'vector.broadcast' op in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of vector}}
  %y = vector.broadcast %x : vector<16xf32> to vector<2x16xf32>
  return
}

// -----

func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>) {
  // expected-error@+1 {{'attn.merge' op in room 3 'online': expected tensors, got buffers}}
  attn.merge %p, %l outs(%o) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>
  return
}

// -----

func.func @bufferized(%x: tensor<8xf32>) {
  // expected-error@+1 {{'bufferization.to_buffer' op in room 3 'online': expected tensors, got an op that makes buffers}}
  %y = bufferization.to_buffer %x : tensor<8xf32> to memref<8xf32>
  return
}

// -----

func.func @allocates() {
  // expected-error@+1 {{'bufferization.alloc_tensor' op in room 3 'online': expected tensors, got an op that makes buffers}}
  %x = bufferization.alloc_tensor() : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 3 'online': expected a function, got a kernel with tile.kernel}}
func.func @kernel() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}
