// RUN: attn-opt %s --convert-attn-to-vector --split-input-file --verify-diagnostics

func.func @unbounded_rows(%q: memref<?x64xf32>, %k: memref<64x64xf32>, %acc: memref<?x64xf32>, %max: memref<?xf32>, %sum: memref<?xf32>) {
  %scale = arith.constant 0.18 : f32
  // expected-error @below {{expected a bounded tile: no constant is known to be at least the number of rows in 'memref<?x64xf32>'}}
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<?x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<?x64xf32>, memref<?xf32>, memref<?xf32>
  return
}

// -----

func.func @unbounded_keys(%q: memref<64x64xf32>, %k: memref<?x64xf32>, %acc: memref<64x64xf32>, %max: memref<64xf32>, %sum: memref<64xf32>) {
  %scale = arith.constant 0.18 : f32
  // expected-error @below {{expected a bounded tile: no constant is known to be at least the number of keys in 'memref<?x64xf32>'}}
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<64x64xf32>, memref<?x64xf32>, memref<?x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64xf32>
  return
}

// -----

func.func @apart(%q: memref<64x64xf32>, %k: memref<64x64xf32, strided<[?, ?]>>, %acc: memref<64x64xf32>, %max: memref<64xf32>, %sum: memref<64xf32>) {
  %scale = arith.constant 0.18 : f32
  // expected-error @below {{expected a contiguous last dimension of key, got 'memref<64x64xf32, strided<[?, ?]>>'}}
  attn.online_attention %q, %k, %q scale(%scale) outs(%acc, %max, %sum)
    : memref<64x64xf32>, memref<64x64xf32, strided<[?, ?]>>, memref<64x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64xf32>
  return
}

// -----

func.func @tensors(%q: tensor<64x64xf32>, %acc: tensor<64x64xf32>, %max: tensor<64xf32>, %sum: tensor<64xf32>) -> tensor<64x64xf32> {
  %scale = arith.constant 0.18 : f32
  // expected-error@+2 {{convert-attn-to-vector: expected room 4 'buffers', got room 3 'online'}}
  // expected-note@+1 {{'attn.online_attention' in room 4 'buffers': expected buffers, got tensor<64x64xf32>}}
  %r:3 = attn.online_attention %q, %q, %q scale(%scale) outs(%acc, %max, %sum)
    : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
  return %r#0 : tensor<64x64xf32>
}

// -----

func.func @stack(%q: memref<1024x64xf32>, %k: memref<2048x64xf32>, %acc: memref<1024x64xf32>, %max: memref<1024xf32>, %sum: memref<1024xf32>) {
  %scale = arith.constant 0.18 : f32
  // expected-error @below {{expected the buffers of a block to take at most 4194304 bytes of stack, got 8654848; smaller tiles take less}}
  scf.forall (%i) in (4) {
    attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
      : memref<1024x64xf32>, memref<2048x64xf32>, memref<2048x64xf32>, memref<1024x64xf32>, memref<1024xf32>, memref<1024xf32>
  }
  return
}

// -----

func.func @normalize_tensors(%acc: tensor<3x264xf32>, %max: tensor<3xf32>, %o: tensor<3x264xf16>) -> tensor<3x264xf16> {
  // expected-error@+2 {{convert-attn-to-vector: expected room 4 'buffers', got room 3 'online'}}
  // expected-note@+1 {{'attn.normalize' in room 4 'buffers': expected buffers, got tensor<3x264xf32>}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<3x264xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x264xf16> -> tensor<3x264xf16>
  return %r : tensor<3x264xf16>
}

// -----

func.func @merge_tensors(%p: tensor<2x8x16xf32>, %pl: tensor<2x8xf32>, %o: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-error@+2 {{convert-attn-to-vector: expected room 4 'buffers', got room 1 'problem'}}
  // expected-note@+1 {{'attn.merge' in room 4 'buffers': expected buffers, got tensor<2x8x16xf32>}}
  %r = attn.merge %p, %pl outs(%o) : tensor<2x8x16xf32>, tensor<2x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

%acc = memref.alloc() : memref<8x16xf32>
%row = memref.alloc() : memref<8xf32>
// expected-error @below {{expected it inside of a function}}
attn.normalize %acc, %row, %row outs(%acc) : memref<8x16xf32>, memref<8xf32>, memref<8xf32>, memref<8x16xf32>
