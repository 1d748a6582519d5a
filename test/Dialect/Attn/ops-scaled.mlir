// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @of_a_tensor(
func.func @of_a_tensor(%x: tensor<?x?x?x128xf8E4M3FN>, %scale: tensor<f32>) -> tensor<?x?x?x128xbf16> {
  // CHECK: attn.scaled %{{.*}}, %{{.*}} : tensor<?x?x?x128xf8E4M3FN>, tensor<f32> -> tensor<?x?x?x128xbf16>
  %k = attn.scaled %x, %scale : tensor<?x?x?x128xf8E4M3FN>, tensor<f32> -> tensor<?x?x?x128xbf16>
  return %k : tensor<?x?x?x128xbf16>
}

// A scale of two heads, for all batches.
// CHECK-LABEL: func.func @of_heads(
func.func @of_heads(%x: tensor<3x4x70x64xf8E5M2>, %scale: tensor<1x2xf32>) -> tensor<3x4x70x64xf16> {
  // CHECK: attn.scaled %{{.*}}, %{{.*}} : tensor<3x4x70x64xf8E5M2>, tensor<1x2xf32> -> tensor<3x4x70x64xf16>
  %k = attn.scaled %x, %scale : tensor<3x4x70x64xf8E5M2>, tensor<1x2xf32> -> tensor<3x4x70x64xf16>
  return %k : tensor<3x4x70x64xf16>
}

// CHECK-LABEL: func.func @of_blocks(
func.func @of_blocks(%x: tensor<3x4x70x64xf8E4M3FN>, %scale: tensor<3x4x2xf32>) -> tensor<3x4x70x64xf32> {
  // CHECK: attn.scaled %{{.*}}, %{{.*}} block 64 : tensor<3x4x70x64xf8E4M3FN>, tensor<3x4x2xf32> -> tensor<3x4x70x64xf32>
  %k = attn.scaled %x, %scale block 64 : tensor<3x4x70x64xf8E4M3FN>, tensor<3x4x2xf32> -> tensor<3x4x70x64xf32>
  return %k : tensor<3x4x70x64xf32>
}

// Elements that stand for themselves.
// CHECK-LABEL: func.func @without_scales(
func.func @without_scales(%q: tensor<?x?x?x64xf8E5M2>) -> tensor<?x?x?x64xbf16> {
  // CHECK: attn.attention
  // CHECK-SAME: tensor<?x?x?x64xf8E5M2> -> tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xf8E5M2>, tensor<?x?x?x64xf8E5M2>, tensor<?x?x?x64xf8E5M2> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
