// RUN: attn-opt %s --attn-verify-level=level=online --verify-diagnostics

// Rooms 1 to 3 are about tensors; buffers come after them.
func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>) {
  // expected-error@+1 {{'attn.merge' op does not belong to level 'online': expected tensors, got buffers}}
  attn.merge %p, %l outs(%o) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>
  return
}
