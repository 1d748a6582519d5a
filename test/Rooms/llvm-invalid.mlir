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
