// An op that the interpreter does not know is an error, not a crash.

// RUN: not attn-run %s --device=interpreter --until=source 2>&1 | FileCheck %s

// CHECK: interpreter-unknown-op.mlir:[[@LINE+2]]:8: 'memref.alloc': expected an op that the interpreter knows
func.func @memory() -> tensor<4xf32> {
  %m = memref.alloc() : memref<4xf32>
  %t = tensor.empty() : tensor<4xf32>
  return %t : tensor<4xf32>
}
