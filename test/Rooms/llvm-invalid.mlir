// RUN: attn-opt %s --attn-verify-room=room=llvm --split-input-file --verify-diagnostics

// A CPU's sixth room: the LLVM dialect alone.

// expected-error@+1 {{'func.func' op in room 6 'llvm': expected ops of llvm, got one of func}}
func.func @function() {
  return
}

// -----

llvm.func @arith(%x: i32) {
  // expected-error@+1 {{'arith.addi' op in room 6 'llvm': expected ops of llvm, got one of arith}}
  %y = arith.addi %x, %x : i32
  llvm.return
}

// -----

llvm.func @instruction() {
  // expected-error@+1 {{'nvvm.barrier0' op in room 6 'llvm': expected ops of llvm, got one of nvvm}}
  nvvm.barrier0
  llvm.return
}

// -----

llvm.func @cast(%x: i64) {
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' op in room 6 'llvm': expected ops of llvm, got one of builtin}}
  %t = builtin.unrealized_conversion_cast %x : i64 to index
  llvm.return
}

// -----

llvm.func @loop(%c: i1) {
  // expected-error@+1 {{'scf.if' op in room 6 'llvm': expected ops of llvm, got one of scf}}
  scf.if %c {
  }
  llvm.return
}

// -----

llvm.func @branch(%c: i1) {
  // expected-error@+1 {{'cf.cond_br' op in room 6 'llvm': expected ops of llvm, got one of cf}}
  cf.cond_br %c, ^end, ^end
^end:
  llvm.return
}

// -----

llvm.func @function_of_math(%x: f32) {
  // expected-error@+1 {{'math.exp2' op in room 6 'llvm': expected ops of llvm, got one of math}}
  %y = math.exp2 %x : f32
  llvm.return
}

// -----

llvm.func @vector(%x: f32) {
  // expected-error@+1 {{'vector.broadcast' op in room 6 'llvm': expected ops of llvm, got one of vector}}
  %y = vector.broadcast %x : f32 to vector<8xf32>
  llvm.return
}

// -----

llvm.func @buffer() {
  // expected-error@+1 {{'memref.alloca' op in room 6 'llvm': expected ops of llvm, got one of memref}}
  %y = memref.alloca() : memref<8xf32>
  llvm.return
}

// -----

llvm.func @tensor() {
  // expected-error@+1 {{'tensor.empty' op in room 6 'llvm': expected ops of llvm, got one of tensor}}
  %y = tensor.empty() : tensor<8xf32>
  llvm.return
}

// -----

llvm.func @bound() {
  // expected-error@+1 {{'affine.apply' op in room 6 'llvm': expected ops of llvm, got one of affine}}
  %y = affine.apply affine_map<() -> (8)>()
  llvm.return
}
