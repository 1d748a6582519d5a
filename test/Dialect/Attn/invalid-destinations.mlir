// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @destination_c1(%q: memref<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected all operands to be tensors or all to be buffers, got 5 and 1}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// The interface would look for a third result.
func.func @destination_c1_state(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: memref<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected all operands to be tensors or all to be buffers, got 5 and 1}}
  %r:2 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, memref<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>
  return
}

// -----

func.func @destination_c2(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected results of the destinations' types ('tensor<8x16xf32>', 'tensor<8xf32>', 'tensor<8xf32>'), got ()}}
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @destination_c2_type(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  // expected-error@+1 {{expected results of the destinations' types ('tensor<8x16xf32>', 'tensor<8xf32>', 'tensor<8xf32>'), got ('tensor<?x16xf32>', 'tensor<8xf32>', 'tensor<8xf32>')}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<?x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @destination_c2_buffers(%q: memref<8x64xf16>, %k: memref<4x64xf16>, %v: memref<4x16xf16>, %scale: f32,
    %acc: memref<8x16xf32>, %max: memref<8xf32>, %sum: memref<8xf32>) {
  // expected-error@+1 {{expected results of the destinations' types (), got ('tensor<8xf32>')}}
  %r = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<8x64xf16>, memref<4x64xf16>, memref<4x16xf16>, memref<8x16xf32>, memref<8xf32>, memref<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @strided(%q: memref<8x64xf16, affine_map<(d0, d1) -> (d0 mod 2, d1)>>, %k: memref<4x64xf16>, %v: memref<4x16xf16>, %scale: f32,
    %acc: memref<8x16xf32>, %max: memref<8xf32>, %sum: memref<8xf32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor or strided memref, but got 'memref<8x64xf16, affine_map<(d0, d1) -> (d0 mod 2, d1)>>'}}
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<8x64xf16, affine_map<(d0, d1) -> (d0 mod 2, d1)>>, memref<4x64xf16>, memref<4x16xf16>, memref<8x16xf32>, memref<8xf32>, memref<8xf32>
  return
}
