// RUN: attn-opt %s --split-input-file --verify-diagnostics

// The regions of both attention ops obey the same constraints.
func.func @attention_c10(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %i: index) {
  // expected-error@+1 {{expected 'at' to hold 4 positions (b, h, m, n), got 1}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) at(%i) outs(%acc, %max, %sum)
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @attention_c12(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %flags: memref<?xi1>) {
  // expected-error@+1 {{expected only arith and math ops and tensor.extract in the mask region, got 'memref.load'}}
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      // expected-note@+1 {{the op}}
      %keep = memref.load %flags[%m] : memref<?xi1>
      attn.yield %keep : i1
    }
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @attention_c14(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
    %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) {
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    mask(%b, %h, %m, %n) {
      // expected-error@+1 {{expected the mask region to yield 'i1', got 'index'}}
      attn.yield %m : index
    }
    : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  return
}
