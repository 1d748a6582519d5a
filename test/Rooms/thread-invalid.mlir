// RUN: attn-opt %s --attn-verify-room=room=thread --split-input-file --verify-diagnostics

// One thread: the llvm and nvvm dialects, and nothing of the rooms above.

// expected-error@+1 {{'func.func' op in room 7 'thread': expected ops of llvm, nvvm, got one of func}}
func.func @function() {
  return
}

// -----

llvm.func @arith(%x: i32) attributes {nvvm.kernel} {
  // expected-error@+1 {{'arith.addi' op in room 7 'thread': expected ops of llvm, nvvm, got one of arith}}
  %y = arith.addi %x, %x : i32
  llvm.return
}

// -----

llvm.func @math(%x: f32) attributes {nvvm.kernel} {
  // expected-error@+1 {{'math.exp2' op in room 7 'thread': expected ops of llvm, nvvm, got one of math}}
  %y = math.exp2 %x : f32
  llvm.return
}

// -----

llvm.func @roles() attributes {nvvm.kernel} {
  // expected-error@+1 {{'tile.warpgroup' op in room 7 'thread': expected ops of llvm, nvvm, got one of tile}}
  %w = tile.warpgroup
  llvm.return
}

// -----

llvm.func @sync() attributes {nvvm.kernel} {
  // expected-error@+1 {{'tile.sync' op in room 7 'thread': expected ops of llvm, nvvm, got one of tile}}
  tile.sync
  llvm.return
}

// -----

llvm.func @wait() attributes {nvvm.kernel} {
  // expected-error@+1 {{'tile.mma_wait' op in room 7 'thread': expected ops of llvm, nvvm, got one of tile}}
  tile.mma_wait 0
  llvm.return
}

// -----

llvm.func @block() attributes {nvvm.kernel} {
  // expected-error@+1 {{'gpu.block_id' op in room 7 'thread': expected ops of llvm, nvvm, got one of gpu}}
  %b = gpu.block_id x
  llvm.return
}

// -----

llvm.func @alloca() attributes {nvvm.kernel} {
  // expected-error@+1 {{'memref.alloca' op in room 7 'thread': expected ops of llvm, nvvm, got one of memref}}
  %m = memref.alloca() : memref<8xf32>
  llvm.return
}

// -----

llvm.func @slice() attributes {nvvm.kernel} {
  // expected-error@+1 {{'tensor.empty' op in room 7 'thread': expected ops of llvm, nvvm, got one of tensor}}
  %t = tensor.empty() : tensor<8xf32>
  llvm.return
}

// -----

llvm.func @cast(%x: i64) attributes {nvvm.kernel} {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op in room 7 'thread': expected ops of llvm, nvvm, got one of builtin}}
  %t = builtin.unrealized_conversion_cast %x : i64 to index
  llvm.return
}

// -----

llvm.func @vector(%x: f32) attributes {nvvm.kernel} {
  // expected-error@+1 {{'vector.broadcast' op in room 7 'thread': expected ops of llvm, nvvm, got one of vector}}
  %y = vector.broadcast %x : f32 to vector<4xf32>
  llvm.return
}

// -----

llvm.func @constant() attributes {nvvm.kernel} {
  // expected-error@+1 {{'arith.constant' op in room 7 'thread': expected ops of llvm, nvvm, got one of arith}}
  %y = arith.constant 0 : index
  llvm.return
}

// -----

// expected-error@+1 {{'llvm.func' op in room 7 'thread': expected a kernel with nvvm.kernel, got a function without}}
llvm.func @no_kernel() {
  llvm.return
}
