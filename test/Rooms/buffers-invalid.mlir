// RUN: attn-opt %s --attn-verify-room=room=buffers --split-input-file --verify-diagnostics

// A CPU's fourth room: what was a tensor is a buffer.

func.func @tensor() {
  // expected-error@+1 {{'tensor.empty' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of tensor}}
  %t = tensor.empty() : tensor<8xf32>
  return
}

// -----

func.func @constant() {
  // expected-error@+1 {{'arith.constant' op in room 4 'buffers': expected buffers, got tensor<8xf32>}}
  %t = arith.constant dense<0.0> : tensor<8xf32>
  return
}

// -----

func.func @running_state(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+1 {{'attn.normalize' op in room 4 'buffers': expected buffers, got tensor<8x16xf32>}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

func.func @vector(%x: vector<16xf32>) {
  // expected-error@+1 {{'vector.broadcast' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of vector}}
  %y = vector.broadcast %x : vector<16xf32> to vector<2x16xf32>
  return
}

// -----

func.func @thread(%x: i32) {
  // expected-error@+1 {{'llvm.add' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of llvm}}
  %y = llvm.add %x, %x : i32
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 4 'buffers': expected a function, got a kernel with tile.kernel}}
func.func @kernel() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// -----

func.func @instruction() {
  // expected-error@+1 {{'nvvm.barrier0' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of nvvm}}
  nvvm.barrier0
  return
}

// -----

func.func @block() {
  // expected-error@+1 {{'gpu.block_id' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of gpu}}
  %x = gpu.block_id x
  return
}

// -----

func.func @barrier() {
  // expected-error@+1 {{'tile.sync' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of tile}}
  tile.sync
  return
}

// -----

func.func @branch() {
  // expected-error@+1 {{'cf.br' op in room 4 'buffers': expected ops of func, memref, arith, math, linalg, affine, attn, scf, bufferization, ub, got one of cf}}
  cf.br ^end
^end:
  return
}
