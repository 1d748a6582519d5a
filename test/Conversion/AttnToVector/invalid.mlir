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

// A bound that no tile has is none.
func.func @bounded_by_anything(%q: memref<?x64xf32, strided<[64, 1]>>, %k: memref<64x64xf32>, %acc: memref<?x64xf32>, %max: memref<?xf32>, %sum: memref<?xf32>, %n: index) {
  %scale = arith.constant 0.18 : f32
  %rows = affine.min affine_map<()[s0] -> (s0, 9223372036854775807)>()[%n]
  %tile = memref.subview %q[0, 0] [%rows, 64] [1, 1] : memref<?x64xf32, strided<[64, 1]>> to memref<?x64xf32, strided<[64, 1]>>
  // expected-error @below {{expected a bounded tile: no constant is known to be at least the number of rows in}}
  attn.online_attention %tile, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<?x64xf32, strided<[64, 1]>>, memref<64x64xf32>, memref<64x64xf32>, memref<?x64xf32>, memref<?xf32>, memref<?xf32>
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

func.func @rows_apart(%q: memref<64x64xf32>, %k: memref<64x64xf32>, %acc: memref<64x64xf32>, %max: memref<64xf32, strided<[2]>>, %sum: memref<64xf32>) {
  %scale = arith.constant 0.18 : f32
  // expected-error @below {{expected a contiguous last dimension of row_max, got 'memref<64xf32, strided<[2]>>'}}
  attn.online_attention %q, %k, %q scale(%scale) outs(%acc, %max, %sum)
    : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<64xf32, strided<[2]>>, memref<64xf32>
  return
}

// -----

func.func @unknown_columns(%q: memref<64x?xf32>, %k: memref<64x64xf32>, %acc: memref<64x64xf32>, %max: memref<64xf32>) {
  %scale = arith.constant 0.18 : f32
  // expected-error @below {{expected a static last dimension of query, got 'memref<64x?xf32>'}}
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %max)
    : memref<64x?xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64xf32>
  return
}

// -----

func.func @normalize(%acc: memref<4x?xf32>, %max: memref<4xf32>, %o: memref<4x16xf16>) {
  // expected-error @below {{expected a static last dimension of acc, got 'memref<4x?xf32>'}}
  attn.normalize %acc, %max, %max outs(%o) : memref<4x?xf32>, memref<4xf32>, memref<4xf32>, memref<4x16xf16>
  return
}

// -----

func.func @normalize_apart(%acc: memref<4x16xf32>, %max: memref<4xf32>, %o: memref<4x16xf16, strided<[32, 2]>>) {
  // expected-error @below {{expected a contiguous last dimension of output, got 'memref<4x16xf16, strided<[32, 2]>>'}}
  attn.normalize %acc, %max, %max outs(%o) : memref<4x16xf32>, memref<4xf32>, memref<4xf32>, memref<4x16xf16, strided<[32, 2]>>
  return
}

// -----

func.func @merge(%p: memref<2x8x16xf32>, %pl: memref<2x8xf32>, %o: memref<8x?xf32>) {
  // expected-error @below {{expected a static last dimension of output, got 'memref<8x?xf32>'}}
  attn.merge %p, %pl outs(%o) : memref<2x8x16xf32>, memref<2x8xf32>, memref<8x?xf32>
  return
}

// -----

func.func @merge_apart(%p: memref<2x8x16xf32, strided<[256, 32, 2]>>, %pl: memref<2x8xf32>, %o: memref<8x16xf32>) {
  // expected-error @below {{expected a contiguous last dimension of partial, got 'memref<2x8x16xf32, strided<[256, 32, 2]>>'}}
  attn.merge %p, %pl outs(%o) : memref<2x8x16xf32, strided<[256, 32, 2]>>, memref<2x8xf32>, memref<8x16xf32>
  return
}

// -----

func.func @grad_rows(%o: memref<4x?xf32>, %l: memref<4xf32>) {
  // expected-error @below {{expected a static last dimension of output, got 'memref<4x?xf32>'}}
  attn.grad_rows %o, %o, %l outs(%l, %l) : memref<4x?xf32>, memref<4x?xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>
  return
}

// -----

func.func @grad_rows_apart(%o: memref<4x16xf32>, %do: memref<4x16xf32, strided<[32, 2]>>, %l: memref<4xf32>) {
  // expected-error @below {{expected a contiguous last dimension of d_output, got 'memref<4x16xf32, strided<[32, 2]>>'}}
  attn.grad_rows %o, %do, %l outs(%l, %l) : memref<4x16xf32>, memref<4x16xf32, strided<[32, 2]>>, memref<4xf32>, memref<4xf32>, memref<4xf32>
  return
}

// -----

func.func @grad_end(%acc: memref<4x?xf32>, %o: memref<4x?xf32>) {
  // expected-error @below {{expected a static last dimension of acc, got 'memref<4x?xf32>'}}
  attn.grad_end %acc outs(%o) : memref<4x?xf32>, memref<4x?xf32>
  return
}

// -----

func.func @grad_end_apart(%acc: memref<4x16xf32>, %o: memref<4x16xf32, strided<[1, 4]>>) {
  // expected-error @below {{expected a contiguous last dimension of output, got 'memref<4x16xf32, strided<[1, 4]>>'}}
  attn.grad_end %acc outs(%o) : memref<4x16xf32>, memref<4x16xf32, strided<[1, 4]>>
  return
}

// -----

func.func @grad_step(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x?xf32>, %do: memref<32x32xf32>, %nl: memref<32xf32>) {
  %scale = arith.constant 0.125 : f32
  // expected-error @below {{expected a static last dimension of value, got 'memref<64x?xf32>'}}
  attn.grad_query_step %q, %k, %v, %do, %nl, %nl scale(%scale) outs(%q)
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x?xf32>, memref<32x32xf32>, memref<32xf32>, memref<32xf32>, memref<32x64xf32>
  return
}

// -----

func.func @grad_step_rows_apart(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %nl: memref<32xf32>, %d: memref<32xf32, strided<[2]>>) {
  %scale = arith.constant 0.125 : f32
  // expected-error @below {{expected a contiguous last dimension of delta, got 'memref<32xf32, strided<[2]>>'}}
  attn.grad_query_step %q, %k, %k, %q, %nl, %d scale(%scale) outs(%q)
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32, strided<[2]>>, memref<32x64xf32>
  return
}

// -----

func.func @grad_step_sum_apart(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %nl: memref<32xf32>, %dk: memref<64x64xf32>, %dv: memref<64x64xf32, strided<[1, 64]>>) {
  %scale = arith.constant 0.125 : f32
  // expected-error @below {{expected a contiguous last dimension of a sum, got 'memref<64x64xf32, strided<[1, 64]>>'}}
  attn.grad_key_value_step %q, %k, %k, %q, %nl, %nl scale(%scale) outs(%dk, %dv)
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>, memref<64x64xf32>, memref<64x64xf32, strided<[1, 64]>>
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

// -----

func.func @inside_of_generic(%a: memref<4x8xf32>, %b: memref<8xf32>, %q: memref<64x64xf32>, %row: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<4x8xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    // expected-error@below {{expected it outside of 'linalg.generic'}}
    attn.online_attention %q, %q, %q scale(%y) outs(%q, %row, %row)
      : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<64xf32>, memref<64xf32>
    linalg.yield %y : f32
  }
  return
}
