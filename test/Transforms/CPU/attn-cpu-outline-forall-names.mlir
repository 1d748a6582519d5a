// RUN: attn-opt %s --attn-cpu-outline-forall --split-input-file --verify-diagnostics | FileCheck %s

// The name of a body that something else has already gets a tail.
// CHECK: llvm.func internal @f_block0_(
func.func @f(%x: memref<?xf32>, %n: index) {
  %c = arith.constant 0.0 : f32
  scf.forall (%i) in (%n) {
    memref.store %c, %x[%i] : memref<?xf32>
  }
  return
}
func.func private @f_block0()

// -----

// expected-error@below {{expected the name 'attn_cpu_parallel_for' for the function of the pool, '!llvm.func<void (ptr, ptr, i64)>', got it here}}
func.func @attn_cpu_parallel_for(%x: memref<?xf32>, %n: index) {
  %c = arith.constant 0.0 : f32
  scf.forall (%i) in (%n) {
    memref.store %c, %x[%i] : memref<?xf32>
  }
  return
}
