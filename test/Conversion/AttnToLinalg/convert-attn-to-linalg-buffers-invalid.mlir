// RUN: attn-opt %s --convert-attn-to-linalg --verify-diagnostics

func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>) {
  // expected-error@+2 {{convert-attn-to-linalg: expected room 1 'problem' to room 2 'grid', got room 4 'buffers'}}
  // expected-note@+1 {{'attn.merge' in room 1 'problem': expected tensors, got buffers}}
  attn.merge %p, %l outs(%o) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>
  return
}
