// RUN: attn-opt %s --attn-verify-room=room=problem --split-input-file --verify-diagnostics

// Whole tensors: no grid, no running state, no memory.

func.func @running_state(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+1 {{'attn.normalize' op in room 1 'problem': expected attn.attention, got a part of the online softmax}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

func.func @step(%q: tensor<8x16xf16>, %scale: f32, %acc: tensor<8x16xf32>, %row: tensor<8xf32>) {
  // expected-error@+1 {{'attn.online_attention' op in room 1 'problem': expected attn.attention, got a part of the online softmax}}
  %s:3 = attn.online_attention %q, %q, %q scale(%scale) outs(%acc, %row, %row)
    : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @loop(%n: index, %x: f32) -> f32 {
  // expected-error@+1 {{'scf.for' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of scf}}
  %r = scf.for %i = %n to %n step %n iter_args(%y = %x) -> (f32) {
    scf.yield %y : f32
  }
  return %r : f32
}

// -----

func.func @grid(%n: index) {
  // expected-error@+1 {{'scf.forall' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of scf}}
  scf.forall (%i) in (%n) {
  }
  return
}

// -----

func.func @memory(%x: memref<4xf32>, %i: index) {
  // expected-error@+1 {{'memref.load' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of memref}}
  %y = memref.load %x[%i] : memref<4xf32>
  return
}

// -----

func.func @branch() {
  // expected-error@+1 {{'cf.br' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of cf}}
  cf.br ^end
^end:
  return
}

// -----

func.func @tile(%x: memref<128x64xf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of tile}}
  %y = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<128x64xf16>
  return
}

// -----

func.func @thread_number() {
  // expected-error@+1 {{'gpu.thread_id' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of gpu}}
  %i = gpu.thread_id x
  return
}

// -----

func.func @thread(%x: i32) {
  // expected-error@+1 {{'llvm.add' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of llvm}}
  %y = llvm.add %x, %x : i32
  return
}

// -----

func.func @vector(%x: vector<16xf32>) {
  // expected-error@+1 {{'vector.broadcast' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of vector}}
  %y = vector.broadcast %x : vector<16xf32> to vector<2x16xf32>
  return
}

// -----

func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>) {
  // expected-error@+1 {{'attn.merge' op in room 1 'problem': expected tensors, got buffers}}
  attn.merge %p, %l outs(%o) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>
  return
}

// -----

func.func @bufferized(%x: tensor<8xf32>) {
  // expected-error@+1 {{'bufferization.to_buffer' op in room 1 'problem': expected ops of func, tensor, arith, math, linalg, affine, attn, got one of bufferization}}
  %y = bufferization.to_buffer %x : tensor<8xf32> to memref<8xf32>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 1 'problem': expected a function, got a kernel with tile.kernel}}
func.func @kernel() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}
