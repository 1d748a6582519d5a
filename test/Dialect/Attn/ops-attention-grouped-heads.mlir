// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @grouped(
func.func @grouped(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x256x64xf16>) -> tensor<2x8x128x64xf16> {
  // CHECK: attn.attention {{.*}} : tensor<2x8x128x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x8x128x64xf16>
  %o = attn.attention %q, %k, %k : tensor<2x8x128x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// A static extent agrees with a dynamic one.
// CHECK-LABEL: func @partly_static(
func.func @partly_static(%q: tensor<?x8x?x64xf16>, %k: tensor<2x?x256x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<2x?x?x64xf16> {
  // CHECK: attn.attention
  %o = attn.attention %q, %k, %v : tensor<?x8x?x64xf16>, tensor<2x?x256x64xf16>, tensor<?x2x?x64xf16> -> tensor<2x?x?x64xf16>
  return %o : tensor<2x?x?x64xf16>
}
