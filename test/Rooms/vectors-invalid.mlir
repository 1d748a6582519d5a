// RUN: attn-opt %s --attn-verify-room=room=vectors --split-input-file --verify-diagnostics

// A CPU's fifth room: loops over vectors, without attention.

func.func @tensor() {
  // expected-error@+1 {{'tensor.empty' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of tensor}}
  %t = tensor.empty() : tensor<8xf32>
  return
}

// -----

func.func @constant() {
  // expected-error@+1 {{'arith.constant' op in room 5 'vectors': expected buffers, got tensor<8xf32>}}
  %t = arith.constant dense<0.0> : tensor<8xf32>
  return
}

// -----

func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>) {
  // expected-error@+1 {{'attn.merge' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of attn}}
  attn.merge %p, %l outs(%o) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>
  return
}

// -----

func.func @branch() {
  // expected-error@+1 {{'cf.br' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of cf}}
  cf.br ^end
^end:
  return
}

// -----

func.func @tile(%x: memref<128x64xf16>, %i: index) {
  // expected-error@+1 {{'tile.load' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of tile}}
  %y = tile.load %x[%i, %i] : memref<128x64xf16> -> tensor<128x64xf16>
  return
}

// -----

// expected-error@+1 {{'func.func' op in room 5 'vectors': expected a function, got a kernel with tile.kernel}}
func.func @kernel() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// -----

func.func @instruction() {
  // expected-error@+1 {{'nvvm.barrier0' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of nvvm}}
  nvvm.barrier0
  return
}

// -----

func.func @thread() {
  // expected-error@+1 {{'gpu.thread_id' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of gpu}}
  %x = gpu.thread_id x
  return
}

// -----

func.func @structured(%x: f32, %m: memref<8xf32>) {
  // expected-error@+1 {{'linalg.fill' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of linalg}}
  linalg.fill ins(%x : f32) outs(%m : memref<8xf32>)
  return
}

// -----

func.func @barrier() {
  // expected-error@+1 {{'tile.sync' op in room 5 'vectors': expected ops of func, memref, arith, math, affine, scf, vector, x86vector, llvm, ub, builtin, got one of tile}}
  tile.sync
  return
}
